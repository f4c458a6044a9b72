import { beforeEach, expect, test } from "vitest";
import { MessageList } from "../../src/chat/message-list";
import type { ChatMessage } from "../../src/conversation/types";
import { context } from "./context";

let list: MessageList;
beforeEach(() => {
  list = new MessageList("Conversation", context);
  document.body.replaceChildren(list.element);
});

function message(number: number, more: Partial<ChatMessage> = {}): ChatMessage {
  return { id: `m${number}`, role: "user", content: `words ${number}`, timestamp: new Date(number), ...more };
}

function messagesFrom(first: number, last: number): ChatMessage[] {
  return Array.from({ length: last - first + 1 }, (_, step) => message(first + step));
}

const shown = (): string[] => [...list.element.querySelectorAll(".message")].map((element) => /words \d+/.exec(element.textContent)![0]);
const boxes = (): number[] => [...list.element.children].map((box) => box.childElementCount);
const contents = (messages: ChatMessage[]): string[] => messages.map(({ content }) => content);

test("Messages are shown in their order, some to a box", () => {
  const messages = messagesFrom(100, 139);
  list.show(messages);
  expect(shown()).toEqual(contents(messages));
  expect(Math.max(...boxes())).toBe(16);
  expect(list.first?.textContent).toContain("words 100");
});

test("Earlier messages go into new boxes, and existing boxes stay as they are", () => {
  const here = messagesFrom(100, 103);
  list.show(here);
  const box = list.element.firstElementChild!;
  const all = [...messagesFrom(84, 99), ...here];
  list.show(all);
  expect(shown()).toEqual(contents(all));
  expect(boxes()).toEqual([16, 4]);
  expect(list.element.lastElementChild).toBe(box);
});

test("New messages go into the last box until it is full", () => {
  let messages: ChatMessage[] = [];
  const sizes: number[][] = [];
  for (let number = 0; number < 18; number += 2) {
    messages = [...messages, ...messagesFrom(number, number + 1)];
    list.show(messages);
    sizes.push(boxes());
  }
  expect(shown()).toEqual(contents(messages));
  expect(sizes.at(-2)).toEqual([16]);
  expect(sizes.at(-1)).toEqual([16, 2]);
});

test("A message from another tab goes where it belongs, and the others are not touched", () => {
  list.show([message(1), message(5)]);
  const last = list.element.querySelector(".message:last-child");
  const all = [message(1), message(3), message(5)];
  list.show(all);
  expect(shown()).toEqual(contents(all));
  expect(list.element.querySelector(".message:last-child")).toBe(last);
});

test("Messages that change places are moved", () => {
  list.show(messagesFrom(1, 20));
  const turned = messagesFrom(1, 20).reverse();
  list.show(turned);
  expect(shown()).toEqual(contents(turned));
});

test("A new conversation leaves no empty boxes behind", () => {
  list.show(messagesFrom(1, 20));
  list.show([]);
  expect(list.element.childElementCount).toBe(0);
  expect(list.first).toBeNull();
});

test("Only changed messages are drawn again, and a completed answer is reported once", () => {
  const question = message(1);
  const growing = message(2, { role: "assistant", isStreaming: true });
  list.show([question, growing]);
  const bubble = list.first!.firstElementChild;
  const { isStreaming: _, ...done } = growing;
  const complete: ChatMessage = { ...done, standing: "answered" };
  expect(list.show([question, complete])).toEqual([complete]);
  expect(list.show([question, complete])).toEqual([]);
  expect(list.first!.firstElementChild).toBe(bubble);
});
