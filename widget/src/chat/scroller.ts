/** The scrolling area of the chat. It stays at the end while an answer grows, unless the reader has scrolled up. */

import { h, iconButton } from "../dom/elements";
import { DOWN_ARROW } from "../dom/icons";
import type { Translate } from "../i18n/translations";

const NEAR_END = 80; // pixels
const NEAR_START = 400;

export class Scroller {
  readonly element: HTMLElement;
  readonly endButton: HTMLButtonElement;
  #isAtEnd = true;
  #lastTop = 0;
  readonly #resizeObserver = new ResizeObserver(() => this.#isAtEnd && this.scrollToEnd());

  constructor(
    t: Translate,
    private readonly list: { element: HTMLElement; first: Element | null },
    private readonly onNearStart: () => void,
    ...before: HTMLElement[]
  ) {
    this.endButton = iconButton("latest", DOWN_ARROW, t("latest"), () => this.scrollToEnd("smooth"));
    this.endButton.hidden = true;
    this.element = h(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": t("conversation"), on: { scroll: () => this.#onScroll() } },
      ...before,
      list.element,
    );
    this.#resizeObserver.observe(list.element);
  }

  /** Follow what comes next, even if the reader has scrolled up. */
  follow(): void {
    this.#isAtEnd = true;
  }

  scrollToEnd(behavior: "smooth" | "instant" = "instant"): void {
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.element.scrollTo({ top: this.element.scrollHeight, behavior: reducedMotion ? "instant" : behavior });
  }

  /** Run a function that changes the list, without moving what the reader looks at. */
  keepPosition(update: () => void): void {
    // Where the browser keeps the position itself, measuring would only cost a layout.
    const isAnchored = CSS.supports("overflow-anchor", "auto") && this.element.scrollTop > 0;
    const { first } = this.list;
    const anchor = this.#isAtEnd || isAnchored ? null : first;
    const top = anchor?.getBoundingClientRect().top;
    update();
    if (this.#isAtEnd) this.scrollToEnd();
    else if (anchor?.isConnected && first !== this.list.first) {
      this.element.scrollTop += anchor.getBoundingClientRect().top - top!;
    }
    this.endButton.hidden = this.#isAtEnd;
  }

  destroy(): void {
    this.#resizeObserver.disconnect();
  }

  #onScroll(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const isNearEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    // Content that grows below does not count as scrolling away from the end; only scrolling up does.
    this.#isAtEnd = isNearEnd || (this.#isAtEnd && scrollTop >= this.#lastTop);
    this.#lastTop = scrollTop;
    this.endButton.hidden = this.#isAtEnd;
    if (scrollTop < NEAR_START) this.onNearStart();
  }
}
