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
      const { id, question, selection, once, at } = action;
      const asked: Told = { id: `${id}-q`, role: "user", content: question, timestamp: at, ...(selection && { selection }) };
      const answer = waiting(id, question, once, at, selection);
      return started({ ...state, messages: inOrder([...state.messages, asked, answer]) }, id);
    }
    case "retried": {
      const old = state.messages.find((one) => one.id === action.id);
      if (state.streamingMessageId || !old) return state;
      const again = waiting(action.id, action.question, action.once, old.timestamp, old.selection);
      return started(replaced(state, action.id, () => again), action.id);
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
      if (state.streamingMessageId) return state;
      return { ...begin(action.sessionId), messages: inOrder(action.messages), earlier: action.earlier };
    case "recalled":
      return { ...state, messages: inOrder([...action.messages, ...state.messages]), earlier: action.earlier };
    case "begun":
      return begin(action.sessionId);
  }
}

function waiting(id: string, question: string, once: string, at: Date, selection?: Selection): Told {
  return {
    id, role: "assistant", content: "", timestamp: at, isStreaming: true, question, once, ...(selection && { selection }),
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
