import { expect, test } from "vitest";
import { createMessage } from "../../src/chat/message";
import type { ChatMessage } from "../../src/conversation/types";
import { context } from "./context";

const streaming = (more: Partial<ChatMessage>): string | undefined => {
  const message: ChatMessage = { id: "a", role: "assistant", content: "", timestamp: new Date(0), isStreaming: true, ...more };
  return createMessage(message, context).querySelector(".typing")?.textContent;
};

test("an answer without text yet shows what the server is doing", () => {
  expect(streaming({})).toBe("Searching the documents…");
  expect(streaming({ stage: "retrieving" })).toBe("Searching the documents…");
  expect(streaming({ stage: "generating" })).toBe("Writing the answer…");
});

test("the first text replaces the progress", () => {
  expect(streaming({ stage: "generating", content: "Feet" })).toBeUndefined();
});
