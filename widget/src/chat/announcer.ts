/** Short messages for screen readers (`role="status"` is a live region) and, where it matters, for everybody. */

import { h } from "../dom/elements";

const NOTICE_MS = 3000;

export class Announcer {
  readonly element = h("p", { class: "unseen", role: "status" });
  #timer = 0;

  /** Say something to screen readers only. */
  announce(text: string): void {
    this.element.textContent = text;
  }

  /** Say something to everybody; it is visible for a moment. */
  notify(text: string): void {
    this.announce(text);
    this.element.className = "note";
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => (this.element.className = "unseen"), NOTICE_MS);
  }
}
