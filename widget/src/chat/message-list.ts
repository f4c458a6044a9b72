/** The list of messages, in boxes of a few: the browser lays out only the boxes in view, so long conversations stay fast. */

import type { ChatMessage } from "../conversation/types";
import { focusedElement, h } from "../dom/elements";
import type { AnswerContext } from "./answer";
import { createMessage, updateMessage } from "./message";

const BOX_SIZE = 16; // messages; as many as one page of history

export class MessageList {
  readonly element: HTMLElement;
  readonly #context: AnswerContext;
  readonly #shown = new Map<string, { message: ChatMessage; element: HTMLElement }>();

  constructor(label: string, context: AnswerContext) {
    this.#context = context;
    this.element = h("div", { class: "messages", role: "list", "aria-label": label });
  }

  /** The element of the earliest message. */
  get first(): Element | null {
    return this.element.querySelector(".message");
  }

  /** Show these messages, drawing only those that changed. Returns the answers that were streaming and now are complete. */
  show(messages: ChatMessage[]): ChatMessage[] {
    this.#removeAllBut(new Set(messages.map(({ id }) => id)));
    const completed: ChatMessage[] = [];
    const newBoxes = new Set<Element>();
    let next: Element | null = null;
    for (const message of messages.toReversed()) {
      const shown = this.#shown.get(message.id);
      const element = shown?.element ?? createMessage(message, this.#context);
      if (shown && shown.message !== message) {
        updateMessage(element, message, this.#context);
        if (shown.message.isStreaming && !message.isStreaming) completed.unshift(message);
      }
      if (shown?.message !== message) this.#shown.set(message.id, { message, element });
      if (!element.parentElement || nextMessage(element) !== next) this.#moveBefore(element, next, newBoxes);
      next = element;
    }
    return completed;
  }

  #removeAllBut(ids: Set<string>): void {
    for (const [id, { element }] of this.#shown) {
      if (ids.has(id)) continue;
      removeFromBox(element);
      this.#shown.delete(id);
    }
  }

  /** Move a message in front of another one, or to the end. The focus stays where it is. */
  #moveBefore(element: HTMLElement, next: Element | null, newBoxes: Set<Element>): void {
    const focused = focusedElement(element);
    const hadFocus = focused && element.contains(focused);
    this.#insertBefore(element, next, newBoxes);
    if (hadFocus) focused.focus({ preventScroll: true });
  }

  /** Earlier messages go into new boxes, so that the existing boxes need no new layout. */
  #insertBefore(element: HTMLElement, next: Element | null, newBoxes: Set<Element>): void {
    removeFromBox(element);
    const box = next ? next.parentElement! : this.element.lastElementChild;
    const isInsideBox = next?.previousElementSibling;
    const hasRoom = box && box.childElementCount < BOX_SIZE && (!next || newBoxes.has(box));
    if (isInsideBox || hasRoom) return void box!.insertBefore(element, next);
    const newBox = h("div", { class: "box", role: "presentation" }, element);
    newBoxes.add(newBox);
    this.element.insertBefore(newBox, next ? box : null);
  }
}

function nextMessage(element: Element): Element | null {
  return element.nextElementSibling ?? element.parentElement!.nextElementSibling?.firstElementChild ?? null;
}

/** Remove a message, and its box if that is empty then. */
function removeFromBox(element: Element): void {
  const box = element.parentElement;
  element.remove();
  if (box && !box.childElementCount) box.remove();
}
