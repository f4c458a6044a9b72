/** How a conversation changes. Pure: the same state and action give the same state, and nothing else happens. */

import type { Conversation, Failure, Outcome, Selection, Told, Vote } from "./model";

export type Action =
  | { type: "asked"; id: string; question: string; selection?: Selection | undefined; once: string; at: Date }
  | { type: "retried"; id: string; question: string; once: string; at: Date }
  | { type: "reached"; stage: "retrieving" | "generating" }
  | { type: "said"; text: string }
  | { type: "told"; outcome: Outcome; sessionId: string }
  | { type: "failed"; failure: Failure }
  | { type: "stopped" }
  | { type: "voted"; id: string; vote: Vote }
  | { type: "restored"; sessionId: string; messages: Told[]; earlier: number }
  | { type: "recalled"; messages: Told[]; earlier: number }
  | { type: "begun"; sessionId: string };

export function begin(sessionId: string): Conversation {
  return { messages: [], isLoading: false, error: null, streamingMessageId: null, sessionId, earlier: 0 };
}

/** One answer streams at a time: a question asked meanwhile changes nothing. */
export function reduce(state: Conversation, action: Action): Conversation {
  switch (action.type) {
    case "asked": {
      if (state.streamingMessageId) return state;
      const { id, question, selection, once } = action;
      // The server's clock may be ahead of this one: what is asked now comes last all the same.
      const at = new Date(Math.max(action.at.getTime(), ...state.messages.slice(-1).map((one) => one.timestamp.getTime())));
      const asked: Told = { id: `${id}-q`, role: "user", content: question, timestamp: at, ...(selection && { selection }) };
      const answer = waiting(id, question, once, at, selection);
      return started({ ...state, messages: inOrder([...state.messages, asked, answer]) }, id);
    }
    case "retried": {
      const old = state.messages.find((one) => one.id === action.id);
      if (state.streamingMessageId || !old) return state;
      const again = waiting(action.id, action.question, action.once, old.timestamp, old.selection);
      return started(
        replaced(state, action.id, () => again),
        action.id,
      );
    }
    case "reached":
      return streaming(state, (answer) => ({ ...answer, stage: action.stage }));
    case "said":
      return streaming({ ...state, isLoading: false }, (answer) => ({ ...answer, content: answer.content + action.text }));
    case "told":
      return ended({ ...state, sessionId: action.sessionId }, (answer) => ({ ...answer, ...action.outcome }));
    case "failed":
      return {
        ...ended(state, (answer) => ({ ...answer, standing: "failed", failure: action.failure })),
        error: action.failure.message,
      };
    case "stopped":
      return ended(state, (answer) => ({ ...answer, standing: "stopped" }));
    case "voted":
      return replaced(state, action.id, (answer) => ({ ...answer, vote: action.vote }));
    case "restored":
      return { ...state, ...merged(state, action.messages, action.earlier) };
    case "recalled":
      return { ...state, messages: inOrder([...action.messages, ...state.messages]), earlier: action.earlier };
    case "begun":
      return begin(action.sessionId);
  }
}

/**
 * What the server has of a conversation, put together with what is here. What both have keeps its place on the page;
 * what only this page has, a failure or an answer that is coming, stays.
 */
function merged(state: Conversation, told: Told[], earlier: number): Pick<Conversation, "messages" | "earlier"> {
  const here = new Map(state.messages.flatMap((one) => (one.requestId ? [[one.requestId, one] as const] : [])));
  const untold = state.messages.filter((one) => one.role === "assistant" && !one.requestId && !one.isStreaming);
  const renamed = new Map<string, string>();
  for (const one of told) {
    if (one.role === "user") continue;
    // A question that was stopped here is known there, under a number that this page was not told.
    const same =
      (one.requestId && here.get(one.requestId)) || untold.find((other) => other.question === one.question && !taken(renamed, other.id));
    if (same) renamed.set(one.id, same.id);
  }
  const known = told.map((one) => {
    const answer = one.role === "user" ? one.id.slice(0, -2) : one.id;
    const id = renamed.get(answer);
    return id ? { ...one, id: one.role === "user" ? `${id}-q` : id } : one;
  });
  const ids = new Set(known.map((one) => one.id));
  const reaches = state.messages.some((one) => ids.has(one.id)); // else there may be a gap before what was fetched
  const alone = state.messages.filter((one) => {
    if (ids.has(one.id)) return false;
    const answer = one.role === "user" ? state.messages.find((other) => other.id === one.id.slice(0, -2)) : one;
    return reaches || !answer?.requestId;
  });
  return { messages: inOrder([...alone, ...known]), earlier: reaches ? state.earlier : earlier };
}

function taken(names: Map<string, string>, id: string): boolean {
  return [...names.values()].includes(id);
}

function waiting(id: string, question: string, once: string, at: Date, selection?: Selection): Told {
  return {
    id,
    role: "assistant",
    content: "",
    timestamp: at,
    isStreaming: true,
    question,
    once,
    ...(selection && { selection }),
  };
}

function started(state: Conversation, id: string): Conversation {
  return { ...state, isLoading: true, error: null, streamingMessageId: id };
}

function streaming(state: Conversation, change: (answer: Told) => Told): Conversation {
  return state.streamingMessageId ? replaced(state, state.streamingMessageId, change) : state;
}

function ended(state: Conversation, change: (answer: Told) => Told): Conversation {
  const { isLoading: _, ...done } = streaming(state, (answer) => {
    const { isStreaming: __, stage: ___, ...rest } = change(answer);
    return rest;
  });
  return { ...done, isLoading: false, streamingMessageId: null };
}

function replaced(state: Conversation, id: string, change: (message: Told) => Told): Conversation {
  return { ...state, messages: state.messages.map((one) => (one.id === id ? change(one) : one)) };
}

/** By time; what came at the same moment stays as it was. */
function inOrder(messages: Told[]): Told[] {
  return [...messages].sort((a, b) => a.timestamp.getTime() - b.timestamp.getTime());
}
