/** The messages on the page, in boxes of some each: what is out of sight costs no more than its box. */

import { type Asks, draw, show } from "./answer";
import type { Told } from "./model";
import { h } from "./safe";

const IN_A_BOX = 16; // messages; as many as are fetched together

export class List {
  readonly element: HTMLElement;
  readonly #asks: Asks;
  readonly #shown = new Map<string, { message: Told; item: HTMLElement }>();

  constructor(label: string, asks: Asks) {
    this.#asks = asks;
    this.element = h("div", { class: "messages", role: "list", "aria-label": label });
  }

  /** The earliest message that is shown. */
  get first(): Element | null {
    return this.element.querySelector(".message");
  }

  /** Show these, drawing only what is not as it was; those whose answer has come to its end meanwhile are told. */
  show(messages: Told[]): Told[] {
    const present = new Set(messages.map(({ id }) => id));
    for (const [id, { item }] of this.#shown) {
      if (present.has(id)) continue;
      leave(item);
      this.#shown.delete(id);
    }
    const ended: Told[] = [];
    const made = new Set<Element>();
    let next: Element | null = null;
    for (const message of messages.toReversed()) {
      const known = this.#shown.get(message.id);
      const item = known?.item ?? show(message, this.#asks);
      if (known && known.message !== message) {
        draw(item, message, this.#asks);
        if (known.message.isStreaming && !message.isStreaming) ended.unshift(message);
      }
      if (known?.message !== message) this.#shown.set(message.id, { message, item });
      if (!item.parentElement || following(item) !== next) this.#place(item, next, made);
      next = item;
    }
    return ended;
  }

  /** Into the box of what comes next, or into a new one: what is recalled leaves the boxes alone that are there. */
  #place(item: HTMLElement, next: Element | null, made: Set<Element>): void {
    const focused = (item.getRootNode() as Document | ShadowRoot).activeElement as HTMLElement | null;
    const within = focused && item.contains(focused);
    this.#put(item, next, made);
    if (within) focused.focus({ preventScroll: true });
  }

  #put(item: HTMLElement, next: Element | null, made: Set<Element>): void {
    leave(item);
    const box = next ? next.parentElement! : this.element.lastElementChild;
    const inside = next?.previousElementSibling;
    const room = box && box.childElementCount < IN_A_BOX && (!next || made.has(box));
    if (inside || room) return void box!.insertBefore(item, next);
    const fresh = h("div", { class: "box", role: "presentation" }, item);
    made.add(fresh);
    this.element.insertBefore(fresh, next ? box : null);
  }
}

function following(item: Element): Element | null {
  return item.nextElementSibling ?? item.parentElement!.nextElementSibling?.firstElementChild ?? null;
}

function leave(item: Element): void {
  const box = item.parentElement;
  item.remove();
  if (box && !box.childElementCount) box.remove();
}
