/** What a conversation is. The first four are the contract's own; what we know beyond them is added below. */

export interface Message {
  id: string;
  role: "user" | "assistant";
  content: string;
  citations?: Citation[];
  confidence?: number;
  timestamp: Date;
  isStreaming?: boolean;
}

export interface Citation {
  chapter: string;
  chapterTitle: string;
  sourceFile: string;
  excerpt: string;
}

export interface ChatState {
  messages: Message[];
  isLoading: boolean;
  error: string | null;
  streamingMessageId: string | null;
}

export interface StreamEvent {
  content: string;
  done: boolean;
  citations?: Citation[];
  confidence?: number;
  error?: string;
}

/** A citation that can be opened: the chunk, and the words of it that each mark in the answer rests on. */
export interface Source extends Citation {
  chunkId: string | null;
  section: string;
  score: number | null;
  url: string | null;
  line: number | null;
  page: number | null;
  quotes: (string | null)[];
  status: "valid" | "moved" | "changed" | "deleted" | "unknown" | null;
}

export interface Topic {
  title: string;
  file: string;
  url: string | null;
}

export interface Doubt {
  sentence: string;
  verdict: "weak" | "unsupported" | "uncited";
}

/** How an answer is to be taken. "silent" has only sources: nobody was there to write. */
export type Standing = "answered" | "unsure" | "uncovered" | "outside-selection" | "silent" | "stopped" | "failed";

/** What went wrong, in kinds that each have a look of their own. */
export interface Failure {
  kind: "offline" | "unlisted" | "busy" | "unavailable" | "empty" | "key" | "refused" | "cut" | "broken";
  message: string;
  retryAfterSeconds?: number;
}

export interface Selection {
  text: string;
}

export type Vote = "up" | "down" | null;

/** A message as we keep it: an answer knows its question, so that it can be asked again. */
export interface Told extends Message {
  citations?: Source[];
  standing?: Standing;
  stage?: "retrieving" | "generating";
  question?: string;
  selection?: Selection;
  nearest?: Topic[];
  doubts?: Doubt[];
  notice?: string;
  failure?: Failure;
  requestId?: string;
  vote?: Vote;
  /** The word under which the server keeps this exchange once, however often it is tried. */
  once?: string;
}

export interface Conversation extends ChatState {
  messages: Told[];
  sessionId: string;
  /** How many exchanges the server holds from before the first one here. */
  earlier: number;
}

/** What the last event of a stream settles about an answer. */
export type Outcome = Pick<Told, "content" | "citations" | "confidence" | "standing" | "nearest" | "doubts" | "notice" | "requestId">;
