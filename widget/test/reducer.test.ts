import { describe, expect, test } from "vitest";
import type { Conversation, Told } from "../src/model";
import { type Action, begin, reduce } from "../src/reducer";

const AT = new Date("2026-01-01T10:00:00Z");
const asked = (id: string, at = AT): Action => ({ type: "asked", id, question: `Why ${id}?`, once: `once-${id}`, at });
const told = (content: string): Action => ({ type: "told", sessionId: "s", outcome: { content, standing: "answered", citations: [] } });
const run = (...actions: Action[]): Conversation => actions.reduce(reduce, begin("s"));
const last = (state: Conversation): Told => state.messages.at(-1)!;

/** What holds in every state. */
function sound(state: Conversation): void {
  const streaming = state.messages.filter((one) => one.isStreaming);
  expect(streaming.length).toBeLessThanOrEqual(1);
  expect(streaming[0]?.id ?? null).toBe(state.streamingMessageId);
  const times = state.messages.map((one) => one.timestamp.getTime());
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(new Set(state.messages.map((one) => one.id)).size).toBe(state.messages.length);
  if (state.isLoading) expect(state.streamingMessageId).not.toBeNull();
}

test("a question waits for its answer", () => {
  const state = run(asked("a"));
  expect(state.messages.map(({ role, content }) => [role, content])).toEqual([
    ["user", "Why a?"],
    ["assistant", ""],
  ]);
  expect(state).toMatchObject({ isLoading: true, streamingMessageId: "a", error: null });
});

test("an answer grows piece by piece and ends as the server told it", () => {
  const growing = run(asked("a"), { type: "reached", stage: "generating" }, { type: "said", text: "Be" }, { type: "said", text: "cause" });
  expect(last(growing)).toMatchObject({ content: "Because", isStreaming: true, stage: "generating" });
  expect(growing.isLoading).toBe(false);
  const done = reduce(growing, told("Because. [1]"));
  expect(last(done)).toMatchObject({ content: "Because. [1]", standing: "answered" });
  expect(done.streamingMessageId).toBeNull();
});

test("one answer streams at a time", () => {
  const state = run(asked("a"));
  expect(reduce(state, asked("b"))).toBe(state);
  expect(reduce(state, { type: "retried", id: "a", question: "Why a?", once: "x", at: AT })).toBe(state);
});

test("what was said before a failure stays, with why it failed", () => {
  const state = run(asked("a"), { type: "said", text: "Half" }, { type: "failed", failure: { kind: "cut", message: "gone" } });
  expect(last(state)).toMatchObject({ content: "Half", standing: "failed", failure: { kind: "cut" } });
  expect(state).toMatchObject({ error: "gone", streamingMessageId: null, isLoading: false });
});

test("a retry takes the place of what failed, and of its error", () => {
  const state = run(
    asked("a"),
    { type: "failed", failure: { kind: "busy", message: "busy" } },
    { type: "retried", id: "a", question: "Why a?", once: "once-a", at: AT },
  );
  expect(state.messages).toHaveLength(2);
  expect(last(state)).toMatchObject({ content: "", isStreaming: true, once: "once-a" });
  expect(last(state).failure).toBeUndefined();
  expect(state.error).toBeNull();
});

test("what is stopped keeps its words", () => {
  expect(last(run(asked("a"), { type: "said", text: "Half" }, { type: "stopped" }))).toMatchObject({
    content: "Half",
    standing: "stopped",
  });
});

test("a piece that comes after the end changes nothing", () => {
  const done = run(asked("a"), told("Done."));
  expect(reduce(done, { type: "said", text: "late" }).messages).toEqual(done.messages);
  expect(reduce(done, { type: "stopped" }).messages).toEqual(done.messages);
});

/** An exchange as the server gives it. */
function kept(number: number, question: string): Told[] {
  const at = new Date(AT.getTime() + number * 1000);
  return [
    { id: `s-${number}-q`, role: "user", content: question, timestamp: at },
    {
      id: `s-${number}`,
      role: "assistant",
      content: `${question}!`,
      timestamp: at,
      question,
      requestId: `r${number}`,
      standing: "answered",
    },
  ];
}
const restored = (earlier: number, ...messages: Told[][]): Action => ({
  type: "restored",
  sessionId: "s",
  messages: messages.flat(),
  earlier,
});
const answered = (number: number): Action => ({
  type: "told",
  sessionId: "s",
  outcome: { content: "x", standing: "answered", requestId: `r${number}` },
});

describe("what is restored", () => {
  test("goes around an answer that is coming", () => {
    const state = run(asked("a", new Date(AT.getTime() + 9000)), restored(3, kept(1, "Old?")));
    expect(state.messages.map(({ id }) => id)).toEqual(["s-1-q", "s-1", "a-q", "a"]);
    expect(state.streamingMessageId).toBe("a");
    expect(state.earlier).toBe(3);
  });

  test("keeps its place where it was here already", () => {
    const state = run(asked("a"), answered(1), restored(0, kept(1, "Why a?"), kept(2, "More?")));
    expect(state.messages.map(({ id }) => id)).toEqual(["a-q", "a", "s-2-q", "s-2"]);
  });

  test("leaves a question that failed, with its retry", () => {
    const state = run(asked("a"), { type: "failed", failure: { kind: "busy", message: "" } }, restored(0, kept(1, "Other?")));
    expect(state.messages.filter(({ standing }) => standing === "failed")).toHaveLength(1);
    expect(state.messages).toHaveLength(4);
  });

  test("is the same as what was stopped here, and not a second one", () => {
    const state = run(asked("a"), { type: "stopped" }, restored(0, kept(1, "Why a?")));
    expect(state.messages.map(({ id }) => id)).toEqual(["a-q", "a"]);
  });

  test("leaves no gap: what was said here long before is fetched again when it is scrolled to", () => {
    const state = run(asked("a"), answered(1), restored(40, kept(50, "Much later?")));
    expect(state.messages.map(({ id }) => id)).toEqual(["s-50-q", "s-50"]);
    expect(state.earlier).toBe(40);
  });
});

test("a clock that is slow puts nothing new above the old", () => {
  const state = run(restored(0, kept(100, "Old?")), asked("a"));
  expect(state.messages.map(({ id }) => id)).toEqual(["s-100-q", "s-100", "a-q", "a"]);
});

test("recalled messages go before the others, by time", () => {
  const earlier: Told = { id: "old", role: "user", content: "Before?", timestamp: new Date(AT.getTime() - 1000) };
  const state = run(asked("a"), told("x"), { type: "recalled", messages: [earlier], earlier: 4 });
  expect(state.messages.map(({ id }) => id)).toEqual(["old", "a-q", "a"]);
  expect(state.earlier).toBe(4);
});

test("a new conversation is empty", () => {
  expect(run(asked("a"), { type: "begun", sessionId: "t" })).toEqual(begin("t"));
});

test("a vote is kept with its answer", () => {
  expect(last(run(asked("a"), told("x"), { type: "voted", id: "a", vote: "up" })).vote).toBe("up");
});

describe("whatever happens in whatever order", () => {
  const ids = ["a", "b", "c"];
  const possible = (random: () => number): Action => {
    const id = ids[Math.floor(random() * 3)]! + Math.floor(random() * 1000);
    const at = new Date(AT.getTime() + Math.floor(random() * 5000));
    const actions: Action[] = [
      asked(id, at),
      { type: "reached", stage: "retrieving" },
      { type: "said", text: "x" },
      told("y"),
      { type: "stopped" },
      { type: "failed", failure: { kind: "broken", message: "z" } },
      { type: "retried", id, question: "q", once: "o", at },
      { type: "voted", id, vote: "down" },
      { type: "begun", sessionId: id },
    ];
    return actions[Math.floor(random() * actions.length)]!;
  };

  test.each(Array.from({ length: 50 }, (_, seed) => seed + 1))("the state is sound (seed %i)", (seed) => {
    let turn = seed;
    const random = (): number => (turn = (turn * 48271) % 2147483647) / 2147483647;
    let state = begin("s");
    for (let step = 0; step < 60; step += 1) {
      const before = JSON.stringify(state);
      const next = reduce(state, possible(random));
      expect(JSON.stringify(state)).toBe(before); // pure
      sound(next);
      state = next;
    }
  });
});
