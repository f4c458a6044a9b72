/** The messages of a conversation and its state. */

import type { Answer } from "../api/answer";
import type { Stage, Vote } from "../api/client";
import type { Failure } from "../api/errors";

/** A question or an answer. An answer also has its question, to ask it again. */
export interface ChatMessage extends Partial<Answer> {
  /** A UUID. */
  id: string;
  role: "user" | "assistant";
  content: string;
  timestamp: Date;
  isStreaming?: boolean;
  stage?: Stage;
  question?: string;
  /** The text that the question is about, if the reader selected some. */
  selectedText?: string;
  failure?: Failure;
  vote?: Vote;
  idempotencyKey?: string;
}

export interface ConversationState {
  messages: ChatMessage[];
  /** A question was asked, and no text has arrived yet. */
  isLoading: boolean;
  error: string | null;
  streamingMessageId: string | null;
  sessionId: string;
  /** How many exchanges the server has from before the first message here. */
  earlier: number;
}
