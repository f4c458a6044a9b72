/** How a conversation changes. Pure: the same state and action always give the same new state. */

import type { AnswerEvent, Vote } from "../api/client";
import type { Failure } from "../api/errors";
import { questionMessage } from "./history";
import { partnerId } from "./ids";
import type { ChatMessage, ConversationState } from "./types";

export type Action =
  | AnswerEvent
  | { type: "asked"; id: string; question: string; selectedText?: string | undefined; idempotencyKey: string; at: Date }
  | { type: "retried"; id: string; question: string; idempotencyKey: string }
  | { type: "failed"; failure: Failure }
  | { type: "stopped" }
  | { type: "voted"; id: string; vote: Vote }
  | { type: "history-loaded"; messages: ChatMessage[]; earlier: number }
  | { type: "earlier-loaded"; messages: ChatMessage[]; earlier: number }
  | { type: "reset"; sessionId: string };

export function emptyConversation(sessionId: string): ConversationState {
  return { messages: [], isLoading: false, error: null, streamingMessageId: null, sessionId, earlier: 0 };
}

/** Only one answer streams at a time: a question asked meanwhile changes nothing. */
export function reduce(state: ConversationState, action: Action): ConversationState {
  switch (action.type) {
    case "asked":
      return state.streamingMessageId ? state : addQuestion(state, action);
    case "retried": {
      const old = state.messages.find(({ id }) => id === action.id);
      if (state.streamingMessageId || !old) return state;
      const pending = pendingAnswer({ ...action, timestamp: old.timestamp, selectedText: old.selectedText });
      return startStreaming(
        replaceMessage(state, action.id, () => pending),
        action.id,
      );
    }
    case "stage":
      return updateStreaming(state, (answer) => ({ ...answer, stage: action.stage }));
    case "text":
      return updateStreaming({ ...state, isLoading: false }, (answer) => ({ ...answer, content: answer.content + action.text }));
    case "answer":
      return endStreaming(state, (answer) => ({ ...answer, ...action.answer }));
    case "failed":
      return {
        ...endStreaming(state, (answer) => ({ ...answer, standing: "failed", failure: action.failure })),
        error: action.failure.message,
      };
    case "stopped":
      return endStreaming(state, (answer) => ({ ...answer, standing: "stopped" }));
    case "voted":
      return replaceMessage(state, action.id, (answer) => ({ ...answer, vote: action.vote }));
    case "history-loaded":
      return { ...state, ...mergeHistory(state, action.messages, action.earlier) };
    case "earlier-loaded":
      return { ...state, messages: sortByTime([...action.messages, ...state.messages]), earlier: action.earlier };
    case "reset":
      return emptyConversation(action.sessionId);
  }
}

function addQuestion(state: ConversationState, action: Extract<Action, { type: "asked" }>): ConversationState {
  const { id, question, selectedText } = action;
  // The server's clock may be ahead of this one; a new question still comes last.
  const latest = state.messages.at(-1)?.timestamp.getTime() ?? 0;
  const timestamp = new Date(Math.max(action.at.getTime(), latest));
  const messages = [questionMessage(id, question, timestamp, selectedText), pendingAnswer({ ...action, timestamp })];
  return startStreaming({ ...state, messages: sortByTime([...state.messages, ...messages]) }, id);
}

/**
 * Merge what the server has of a conversation with what this page has. A message that both have keeps its id, and so its
 * place on the page. A failure or a streaming answer, which only this page has, stays.
 */
function mergeHistory(state: ConversationState, history: ChatMessage[], earlier: number): Pick<ConversationState, "messages" | "earlier"> {
  const localIds = matchAnswers(state.messages, history);
  const stored = history.map((message) => {
    const localId = localIds.get(answerIdOf(message));
    return localId ? { ...message, id: message.role === "user" ? partnerId(localId) : localId } : message;
  });
  const storedIds = new Set(stored.map(({ id }) => id));
  const overlaps = state.messages.some(({ id }) => storedIds.has(id)); // if not, messages may be missing in between
  const localOnly = state.messages.filter((message) => {
    if (storedIds.has(message.id)) return false;
    const answer = state.messages.find(({ id }) => id === answerIdOf(message));
    return overlaps || !answer?.requestId;
  });
  return { messages: sortByTime([...localOnly, ...stored]), earlier: overlaps ? state.earlier : earlier };
}

/** For the id of each answer in the history: the id of the same answer on this page. */
function matchAnswers(local: ChatMessage[], history: ChatMessage[]): Map<string, string> {
  const byRequest = new Map(local.flatMap((message) => (message.requestId ? [[message.requestId, message.id] as const] : [])));
  // An answer that was stopped here is stored under a request id that this page never received: match its question.
  const unidentified = local.filter(({ role, requestId, isStreaming }) => role === "assistant" && !requestId && !isStreaming);
  const localIds = new Map<string, string>();
  for (const { id, role, requestId, question } of history) {
    if (role === "user") continue;
    const matched = [...localIds.values()];
    const localId =
      (requestId && byRequest.get(requestId)) ||
      unidentified.find((message) => message.question === question && !matched.includes(message.id))?.id;
    if (localId) localIds.set(id, localId);
  }
  return localIds;
}

/** The id of the answer that a message is, or that it asks for. */
function answerIdOf({ id, role }: ChatMessage): string {
  return role === "user" ? partnerId(id) : id;
}

interface Pending {
  id: string;
  question: string;
  idempotencyKey: string;
  timestamp: Date;
  selectedText?: string | undefined;
}

function pendingAnswer({ id, question, idempotencyKey, timestamp, selectedText }: Pending): ChatMessage {
  return {
    id,
    role: "assistant",
    content: "",
    timestamp,
    isStreaming: true,
    question,
    idempotencyKey,
    ...(selectedText && { selectedText }),
  };
}

function startStreaming(state: ConversationState, id: string): ConversationState {
  return { ...state, isLoading: true, error: null, streamingMessageId: id };
}

function updateStreaming(state: ConversationState, change: (answer: ChatMessage) => ChatMessage): ConversationState {
  return state.streamingMessageId ? replaceMessage(state, state.streamingMessageId, change) : state;
}

function endStreaming(state: ConversationState, change: (answer: ChatMessage) => ChatMessage): ConversationState {
  const ended = updateStreaming(state, (answer) => {
    const { isStreaming: _, stage: __, ...rest } = change(answer);
    return rest;
  });
  return { ...ended, isLoading: false, streamingMessageId: null };
}

function replaceMessage(state: ConversationState, id: string, change: (message: ChatMessage) => ChatMessage): ConversationState {
  return { ...state, messages: state.messages.map((message) => (message.id === id ? change(message) : message)) };
}

/** Messages of the same moment keep their order. */
function sortByTime(messages: ChatMessage[]): ChatMessage[] {
  return [...messages].sort((a, b) => a.timestamp.getTime() - b.timestamp.getTime());
}
