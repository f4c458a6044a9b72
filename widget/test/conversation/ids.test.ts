import { expect, test } from "vitest";
import type { components } from "../../src/api/schema";
import { messagesFromHistory } from "../../src/conversation/history";
import { partnerId, randomUuid, storedAnswerId } from "../../src/conversation/ids";
import { emptyConversation, reduce } from "../../src/conversation/reducer";

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
type Page = components["schemas"]["HistoryResponse"];

function page(sessionId: string, count: number): Page {
  const entry = { timestamp: "2026-01-01T10:00:00Z", query: "Why?", response: "So.", sources: [], complete: true };
  return { session_id: sessionId, entries: Array.from({ length: count }, () => entry), total_entries: count };
}

test("every message of a conversation has a UUID of its own", () => {
  const asked = reduce(emptyConversation(randomUuid()), {
    type: "asked",
    id: randomUuid(),
    question: "Why?",
    idempotencyKey: randomUuid(),
    at: new Date("2026-01-02T10:00:00Z"),
  });
  const stored = messagesFromHistory(page(asked.sessionId, 200), 0);
  const { messages } = reduce(asked, { type: "history-loaded", messages: stored, earlier: 0 });
  expect(messages).toHaveLength(402);
  for (const { id } of messages) expect(id).toMatch(UUID);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(402);
});

test("a stored message has the same id however it is loaded", () => {
  const session = randomUuid();
  const all = messagesFromHistory(page(session, 20), 0);
  const last = messagesFromHistory(page(session, 8), 12);
  expect(last.map(({ id }) => id)).toEqual(all.slice(24).map(({ id }) => id));
});

test.each(["00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"])("ids in the session %s are UUIDs", (session) => {
  const answers = Array.from({ length: 1000 }, (_, position) => storedAnswerId(session, position));
  const all = new Set(answers.flatMap((id) => [id, partnerId(id)]));
  expect(all.size).toBe(2000);
  for (const id of all) expect(id).toMatch(UUID);
  for (const id of answers) expect(partnerId(partnerId(id))).toBe(id);
});

test("random ids need no secure context", () => {
  const { randomUUID } = crypto;
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  try {
    expect(randomUuid()).toMatch(UUID);
    expect(randomUuid()).not.toBe(randomUuid());
  } finally {
    Object.defineProperty(crypto, "randomUUID", { value: randomUUID, configurable: true });
  }
});
