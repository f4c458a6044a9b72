/** Turns the stored exchanges of a session into messages. */

import { readAnswer, readSelection } from "../api/answer";
import type { components } from "../api/schema";
import { partnerId, storedAnswerId } from "./ids";
import type { ChatMessage } from "./types";

type Schemas = components["schemas"];

/** The messages of one page of history, which starts at `offset` in the session. */
export function messagesFromHistory(page: Schemas["HistoryResponse"], offset: number): ChatMessage[] {
  return page.entries.flatMap((entry, index) => messagesFromEntry(entry, storedAnswerId(page.session_id, offset + index)));
}

export function questionMessage(answerId: string, question: string, timestamp: Date, selectedText?: string | null): ChatMessage {
  return { id: partnerId(answerId), role: "user", content: question, timestamp, ...(selectedText && { selectedText }) };
}

function messagesFromEntry(entry: Schemas["HistoryEntry"], id: string): ChatMessage[] {
  const timestamp = new Date(entry.timestamp);
  const selectedText = readSelection(entry.sources);
  const answer: ChatMessage = {
    id,
    role: "assistant",
    timestamp,
    question: entry.query,
    ...readAnswer(entry),
    vote: entry.feedback ?? null,
    ...(selectedText && { selectedText }),
  };
  return [questionMessage(id, entry.query, timestamp, selectedText), answer];
}
