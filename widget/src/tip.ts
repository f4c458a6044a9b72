/** The words behind a citation mark, shown while it is pointed at or focused. One for the whole chat. */

import { render } from "./markdown";
import type { Source } from "./model";
import { h } from "./safe";

const GAP = 6;
const LONGEST = 240;

export class Tip {
  readonly element = h("div", { class: "tip", role: "tooltip", id: "citewell-tip", popover: "manual" });
  #mark: HTMLElement | null = null;
  #leaving = 0;

  constructor() {
    this.element.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    this.element.addEventListener("pointerleave", () => this.#leave());
  }

  /** Show the excerpt of a source at a mark whenever somebody looks at it. */
  at(mark: HTMLElement, source: Source, quote: string | null): void {
    mark.setAttribute("aria-describedby", this.element.id);
    const show = (): void => this.#show(mark, source, quote);
    // A pointer that lay there while a source was open above has not come to look: it has to move.
    mark.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.#mark !== mark && show());
    mark.addEventListener("focus", () => mark.matches(":focus-visible") && show());
    mark.addEventListener("pointerleave", () => this.#leave());
    mark.addEventListener("blur", () => this.hide());
  }

  /** Put it away; whether there was anything to put away. */
  hide(): boolean {
    clearTimeout(this.#leaving);
    const shown = this.#mark !== null;
    this.#mark = null;
    if (shown && this.element.isConnected) this.element.hidePopover?.();
    return shown;
  }

  #leave(): void {
    clearTimeout(this.#leaving);
    this.#leaving = window.setTimeout(() => this.hide(), 150);
  }

  #show(mark: HTMLElement, source: Source, quote: string | null): void {
    clearTimeout(this.#leaving);
    const words = quote ?? source.excerpt;
    const cut = words.length > LONGEST ? `${words.slice(0, LONGEST)}…` : words;
    const title = [source.chapterTitle, source.section].filter(Boolean).join(" › ");
    this.element.replaceChildren(h("p", { class: "title", dir: "auto" }, title), render(cut));
    this.#mark = mark;
    this.element.showPopover?.();
    const at = mark.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    const left = Math.min(Math.max(GAP, at.left + at.width / 2 - own.width / 2), innerWidth - own.width - GAP);
    const above = at.top - own.height - GAP;
    // Set through the object model: the page's policy allows no style attribute.
    this.element.style.left = `${Math.max(GAP, left)}px`;
    this.element.style.top = `${above > GAP ? above : at.bottom + GAP}px`;
  }
}
