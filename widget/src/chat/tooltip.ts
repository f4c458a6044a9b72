/** The tooltip of citation marks: the cited words, shown on hover and on keyboard focus. The chat has one for all marks. */

import { type Source, sourceTitle } from "../api/answer";
import { h } from "../dom/elements";
import { renderMarkdown } from "../markdown/markdown";

const GAP = 6; // pixels
const MAX_LENGTH = 240;
const HIDE_DELAY_MS = 150; // long enough to move the pointer into the tooltip

export class Tooltip {
  readonly element = h("div", { class: "tip", role: "tooltip", id: "citewell-tip", popover: "manual" });
  #mark: HTMLElement | null = null;
  #hideTimer = 0;

  constructor() {
    this.element.addEventListener("pointerenter", () => clearTimeout(this.#hideTimer));
    this.element.addEventListener("pointerleave", () => this.#hideSoon());
  }

  /** Show the words of a source whenever this mark is hovered or focused. */
  attachTo(mark: HTMLElement, source: Source, quote: string | null): void {
    mark.setAttribute("aria-describedby", this.element.id);
    const show = (): void => this.#show(mark, source, quote);
    // Not on `pointerenter`: when a panel above the mark closes, a pointer that never moved would open the tooltip.
    mark.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.#mark !== mark && show());
    mark.addEventListener("focus", () => mark.matches(":focus-visible") && show());
    mark.addEventListener("pointerleave", () => this.#hideSoon());
    mark.addEventListener("blur", () => this.hide());
  }

  /** Hide the tooltip; says whether it was visible. */
  hide(): boolean {
    clearTimeout(this.#hideTimer);
    const wasVisible = this.#mark !== null;
    this.#mark = null;
    if (wasVisible && this.element.isConnected) this.element.hidePopover?.();
    return wasVisible;
  }

  #hideSoon(): void {
    clearTimeout(this.#hideTimer);
    this.#hideTimer = window.setTimeout(() => this.hide(), HIDE_DELAY_MS);
  }

  #show(mark: HTMLElement, source: Source, quote: string | null): void {
    clearTimeout(this.#hideTimer);
    const text = quote ?? source.excerpt;
    const excerpt = text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
    this.element.replaceChildren(h("p", { class: "title", dir: "auto" }, sourceTitle(source)), renderMarkdown(excerpt));
    this.#mark = mark;
    this.element.showPopover?.();
    this.#placeAt(mark.getBoundingClientRect());
  }

  #placeAt(mark: DOMRect): void {
    const own = this.element.getBoundingClientRect();
    const left = Math.min(Math.max(GAP, mark.left + mark.width / 2 - own.width / 2), innerWidth - own.width - GAP);
    const above = mark.top - own.height - GAP;
    // Through the object model: the content security policy forbids style attributes.
    this.element.style.left = `${Math.max(GAP, left)}px`;
    this.element.style.top = `${above > GAP ? above : mark.bottom + GAP}px`;
  }
}
