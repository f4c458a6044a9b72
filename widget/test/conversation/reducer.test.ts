import { describe, expect, test } from "vitest";
import { readAnswer } from "../../src/api/answer";
import { partnerId } from "../../src/conversation/ids";
import { type Action, emptyConversation, reduce } from "../../src/conversation/reducer";
import type { ChatMessage, ConversationState } from "../../src/conversation/types";

const AT = new Date("2026-01-01T10:00:00Z");
/** A UUID for each name; a question is named after its answer: "a-q". */
const uuid = (name: string): string => {
  if (name.endsWith("-q")) return partnerId(uuid(name.slice(0, -2)));
  const hex = [...name].map((letter) => letter.charCodeAt(0).toString(16)).join("").padEnd(11, "0");
  return `00000000-0000-4000-8000-${hex}0`;
};
const ids = (...names: string[]): string[] => names.map(uuid);
const asked = (id: string, at = AT): Action => ({ type: "asked", id: uuid(id), question: `Why ${id}?`, idempotencyKey: `once-${id}`, at });
const ANSWER = readAnswer({
  answer: "x",
  fallback_message: null,
  sources: [],
  metadata: { query_time_ms: 1, retrieval_count: 1, mode: "full", low_confidence: false, request_id: "r" },
  session_id: "s",
});
const finished = (content: string): Action => ({ type: "answer", answer: { ...ANSWER, content } });
const run = (...actions: Action[]): ConversationState => actions.reduce(reduce, emptyConversation("s"));
const last = (state: ConversationState): ChatMessage => state.messages.at(-1)!;

/** Check what holds in every state. */
function expectValid(state: ConversationState): void {
  const streaming = state.messages.filter((message) => message.isStreaming);
  expect(streaming.length).toBeLessThanOrEqual(1);
  expect(streaming[0]?.id ?? null).toBe(state.streamingMessageId);
  const times = state.messages.map((message) => message.timestamp.getTime());
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(new Set(state.messages.map((message) => message.id)).size).toBe(state.messages.length);
  if (state.isLoading) expect(state.streamingMessageId).not.toBeNull();
}

test("a question waits for its answer", () => {
  const state = run(asked("a"));
  expect(state.messages.map(({ role, content }) => [role, content])).toEqual([
    ["user", "Why a?"],
    ["assistant", ""],
  ]);
  expect(state).toMatchObject({ isLoading: true, streamingMessageId: uuid("a"), error: null });
});

test("an answer grows with each text and ends as the server sent it", () => {
  const growing = run(asked("a"), { type: "stage", stage: "generating" }, { type: "text", text: "Be" }, { type: "text", text: "cause" });
  expect(last(growing)).toMatchObject({ content: "Because", isStreaming: true, stage: "generating" });
  expect(growing.isLoading).toBe(false);
  const done = reduce(growing, finished("Because. [1]"));
  expect(last(done)).toMatchObject({ content: "Because. [1]", standing: "answered" });
  expect(done.streamingMessageId).toBeNull();
});

test("one answer streams at a time", () => {
  const state = run(asked("a"));
  expect(reduce(state, asked("b"))).toBe(state);
  expect(reduce(state, { type: "retried", id: uuid("a"), question: "Why a?", idempotencyKey: "x" })).toBe(state);
});

test("the text before a failure stays, with the reason", () => {
  const state = run(asked("a"), { type: "text", text: "Half" }, { type: "failed", failure: { kind: "cut", message: "gone" } });
  expect(last(state)).toMatchObject({ content: "Half", standing: "failed", failure: { kind: "cut" } });
  expect(state).toMatchObject({ error: "gone", streamingMessageId: null, isLoading: false });
});

test("a retry takes the place of what failed, and of its error", () => {
  const state = run(
    asked("a"),
    { type: "failed", failure: { kind: "busy", message: "busy" } },
    { type: "retried", id: uuid("a"), question: "Why a?", idempotencyKey: "once-a" },
  );
  expect(state.messages).toHaveLength(2);
  expect(last(state)).toMatchObject({ content: "", isStreaming: true, idempotencyKey: "once-a" });
  expect(last(state).failure).toBeUndefined();
  expect(state.error).toBeNull();
});

test("a stopped answer keeps its text", () => {
  expect(last(run(asked("a"), { type: "text", text: "Half" }, { type: "stopped" }))).toMatchObject({
    content: "Half",
    standing: "stopped",
  });
});

test("a text that arrives after the end changes nothing", () => {
  const done = run(asked("a"), finished("Done."));
  expect(reduce(done, { type: "text", text: "late" }).messages).toEqual(done.messages);
  expect(reduce(done, { type: "stopped" }).messages).toEqual(done.messages);
});

/** An exchange as the server gives it. */
function stored(number: number, question: string): ChatMessage[] {
  const at = new Date(AT.getTime() + number * 1000);
  return [
    { id: uuid(`s-${number}-q`), role: "user", content: question, timestamp: at },
    {
      id: uuid(`s-${number}`),
      role: "assistant",
      content: `${question}!`,
      timestamp: at,
      question,
      requestId: `r${number}`,
      standing: "answered",
    },
  ];
}
const restored = (earlier: number, ...messages: ChatMessage[][]): Action => ({
  type: "history-loaded",
  messages: messages.flat(),
  earlier,
});
const answered = (number: number): Action => ({ type: "answer", answer: { ...ANSWER, requestId: `r${number}` } });

describe("history", () => {
  test("is merged around an answer that streams", () => {
    const state = run(asked("a", new Date(AT.getTime() + 9000)), restored(3, stored(1, "Old?")));
    expect(state.messages.map(({ id }) => id)).toEqual(ids("s-1-q", "s-1", "a-q", "a"));
    expect(state.streamingMessageId).toBe(uuid("a"));
    expect(state.earlier).toBe(3);
  });

  test("keeps the ids of messages that are here already", () => {
    const state = run(asked("a"), answered(1), restored(0, stored(1, "Why a?"), stored(2, "More?")));
    expect(state.messages.map(({ id }) => id)).toEqual(ids("a-q", "a", "s-2-q", "s-2"));
  });

  test("keeps a failed question, with its retry", () => {
    const state = run(asked("a"), { type: "failed", failure: { kind: "busy", message: "" } }, restored(0, stored(1, "Other?")));
    expect(state.messages.filter(({ standing }) => standing === "failed")).toHaveLength(1);
    expect(state.messages).toHaveLength(4);
  });

  test("matches an answer that was stopped here", () => {
    const state = run(asked("a"), { type: "stopped" }, restored(0, stored(1, "Why a?")));
    expect(state.messages.map(({ id }) => id)).toEqual(ids("a-q", "a"));
  });

  test("leaves no gap: older messages here are dropped, to be loaded again by scrolling", () => {
    const state = run(asked("a"), answered(1), restored(40, stored(50, "Much later?")));
    expect(state.messages.map(({ id }) => id)).toEqual(ids("s-50-q", "s-50"));
    expect(state.earlier).toBe(40);
  });
});

test("a slow clock does not put a new question above old ones", () => {
  const state = run(restored(0, stored(100, "Old?")), asked("a"));
  expect(state.messages.map(({ id }) => id)).toEqual(ids("s-100-q", "s-100", "a-q", "a"));
});

test("earlier messages go before the others, by time", () => {
  const earlier: ChatMessage = { id: uuid("old"), role: "user", content: "Before?", timestamp: new Date(AT.getTime() - 1000) };
  const state = run(asked("a"), finished("x"), { type: "earlier-loaded", messages: [earlier], earlier: 4 });
  expect(state.messages.map(({ id }) => id)).toEqual(ids("old", "a-q", "a"));
  expect(state.earlier).toBe(4);
});

test("a new conversation is empty", () => {
  expect(run(asked("a"), { type: "reset", sessionId: "t" })).toEqual(emptyConversation("t"));
});

test("a vote is stored in its answer", () => {
  expect(last(run(asked("a"), finished("x"), { type: "voted", id: uuid("a"), vote: "up" })).vote).toBe("up");
});

describe("whatever happens in whatever order", () => {
  const names = ["a", "b", "c"];
  const possible = (random: () => number): Action => {
    const name = names[Math.floor(random() * 3)]! + Math.floor(random() * 1000);
    const id = uuid(name);
    const at = new Date(AT.getTime() + Math.floor(random() * 5000));
    const actions: Action[] = [
      asked(name, at),
      { type: "stage", stage: "retrieving" },
      { type: "text", text: "x" },
      finished("y"),
      { type: "stopped" },
      { type: "failed", failure: { kind: "broken", message: "z" } },
      { type: "retried", id, question: "q", idempotencyKey: "o" },
      { type: "voted", id, vote: "down" },
      { type: "reset", sessionId: id },
    ];
    return actions[Math.floor(random() * actions.length)]!;
  };

  test.each(Array.from({ length: 50 }, (_, seed) => seed + 1))("the state is valid (seed %i)", (seed) => {
    let turn = seed;
    const random = (): number => (turn = (turn * 48271) % 2147483647) / 2147483647;
    let state = emptyConversation("s");
    for (let step = 0; step < 60; step += 1) {
      const before = JSON.stringify(state);
      const next = reduce(state, possible(random));
      expect(JSON.stringify(state)).toBe(before); // pure
      expectValid(next);
      state = next;
    }
  });
});
