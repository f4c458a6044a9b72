/** A message of the conversation: the reader's question, or an answer. */

import { focusedElement, h } from "../dom/elements";
import type { ChatMessage } from "../conversation/types";
import { type AnswerContext, renderAnswer } from "./answer";

const MAX_SELECTION_LENGTH = 160;

export function createMessage(message: ChatMessage, context: AnswerContext): HTMLElement {
  const element = h("div", { class: `message ${message.role}`, role: "listitem" });
  updateMessage(element, message, context);
  return element;
}

/** Draw a message again. The focus stays on the control that had it. */
export function updateMessage(element: HTMLElement, message: ChatMessage, context: AnswerContext): void {
  const controls = (): HTMLElement[] => [...element.querySelectorAll<HTMLElement>("button, a[href], [tabindex]")];
  const focused = focusedElement(element);
  const position = focused ? controls().indexOf(focused) : -1;
  if (message.standing) element.dataset.standing = message.standing;
  else delete element.dataset.standing;
  element.replaceChildren(message.role === "user" ? renderQuestion(message, context) : renderAnswer(message, context));
  if (position >= 0) controls().at(Math.min(position, controls().length - 1))?.focus();
}

/** Text on one line, cut to a length. */
export function shorten(text: string, maxLength: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
}

function renderQuestion({ content, selectedText }: ChatMessage, { t }: AnswerContext): HTMLElement {
  return h(
    "div",
    { class: "bubble" },
    h("span", { class: "unseen" }, `${t("you")}: `),
    selectedText && h("blockquote", { class: "scope", dir: "auto" }, shorten(selectedText, MAX_SELECTION_LENGTH)),
    h("div", { dir: "auto" }, content),
  );
}
