import { beforeEach, expect, test } from "vitest";
import { List } from "../src/list";
import type { Told } from "../src/model";
import { asks } from "./asks";

let list: List;
beforeEach(() => {
  list = new List("Conversation", asks);
  document.body.replaceChildren(list.element);
});

function said(number: number, more: Partial<Told> = {}): Told {
  return { id: `m${number}`, role: "user", content: `words ${number}`, timestamp: new Date(number), ...more };
}

function from(first: number, last: number): Told[] {
  return Array.from({ length: last - first + 1 }, (_, step) => said(first + step));
}

const words = (): string[] => [...list.element.querySelectorAll(".message")].map((one) => /words \d+/.exec(one.textContent)![0]);
const boxes = (): number[] => [...list.element.children].map((box) => box.childElementCount);
const told = (messages: Told[]): string[] => messages.map(({ content }) => content);

test("Messages are shown in their order, some to a box", () => {
  const messages = from(100, 139);
  list.show(messages);
  expect(words()).toEqual(told(messages));
  expect(Math.max(...boxes())).toBe(16);
  expect(list.first?.textContent).toContain("words 100");
});

test("What is recalled goes into boxes of its own, and those that were there stay as they are", () => {
  const here = from(100, 103);
  list.show(here);
  const box = list.element.firstElementChild!;
  const all = [...from(84, 99), ...here];
  list.show(all);
  expect(words()).toEqual(told(all));
  expect(boxes()).toEqual([16, 4]);
  expect(list.element.lastElementChild).toBe(box);
});

test("What is asked goes into the last box, until that is full", () => {
  let messages: Told[] = [];
  const sizes: number[][] = [];
  for (let number = 0; number < 18; number += 2) {
    messages = [...messages, ...from(number, number + 1)];
    list.show(messages);
    sizes.push(boxes());
  }
  expect(words()).toEqual(told(messages));
  expect(sizes.at(-2)).toEqual([16]);
  expect(sizes.at(-1)).toEqual([16, 2]);
});

test("What another tab said goes where it belongs, and what stays is not touched", () => {
  list.show([said(1), said(5)]);
  const last = list.element.querySelector(".message:last-child");
  const all = [said(1), said(3), said(5)];
  list.show(all);
  expect(words()).toEqual(told(all));
  expect(list.element.querySelector(".message:last-child")).toBe(last);
});

test("Messages that change places are moved", () => {
  list.show(from(1, 20));
  const turned = from(1, 20).reverse();
  list.show(turned);
  expect(words()).toEqual(told(turned));
});

test("A new conversation leaves no empty boxes behind", () => {
  list.show(from(1, 20));
  list.show([]);
  expect(list.element.childElementCount).toBe(0);
  expect(list.first).toBeNull();
});

test("Only what changed is drawn anew, and an answer that came to its end is told of once", () => {
  const asked = said(1);
  const growing = said(2, { role: "assistant", isStreaming: true });
  list.show([asked, growing]);
  const bubble = list.first!.firstElementChild;
  const { isStreaming: _, ...done } = growing;
  const whole: Told = { ...done, standing: "answered" };
  expect(list.show([asked, whole])).toEqual([whole]);
  expect(list.show([asked, whole])).toEqual([]);
  expect(list.first!.firstElementChild).toBe(bubble);
});
