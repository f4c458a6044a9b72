/** A button beside text that was selected: ask about just this. */

import { QUOTE } from "./icons";
import { h, icon } from "./safe";

const LEAST = 3;
const LONGEST = 64_000;

export class SelectionButton {
  readonly element: HTMLButtonElement;
  #text = "";

  constructor(
    private readonly within: Element,
    words: string,
    use: (text: string) => void,
  ) {
    const take = (event: Event): void => {
      event.preventDefault(); // keeps the selection, and the focus where it is
      const text = this.#text;
      this.#hide();
      getSelection()?.removeAllRanges();
      use(text);
    };
    this.element = h(
      "button",
      { type: "button", class: "about", hidden: true, on: { pointerdown: take, click: take } },
      icon(QUOTE),
      words,
    );
    document.addEventListener("selectionchange", this.#changed);
    document.addEventListener("scroll", this.#hide, { capture: true, passive: true });
  }

  end(): void {
    document.removeEventListener("selectionchange", this.#changed);
    document.removeEventListener("scroll", this.#hide, { capture: true });
    this.element.remove();
  }

  #hide = (): void => {
    this.element.hidden = true;
  };

  #changed = (): void => {
    const selection = getSelection();
    const range = selection?.rangeCount ? selection.getRangeAt(0) : null;
    const text = range ? written(range, selection!.toString()).trim() : "";
    const inside = range && this.within.contains(range.commonAncestorContainer) && !isField(document.activeElement);
    // What is selected in a shadow tree, as in the widget itself, has no place that the page may know.
    if (!range || range.collapsed || !inside || text.length < LEAST || text.length > LONGEST) return this.#hide();
    this.#text = text;
    this.element.hidden = false;
    const at = range.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    this.element.style.left = `${Math.min(Math.max(4, at.left), innerWidth - own.width - 4)}px`;
    this.element.style.top = `${at.top > own.height + 8 ? at.top - own.height - 6 : Math.min(at.bottom + 6, innerHeight - own.height - 4)}px`;
  };
}

/** What was selected, with formulas as they were written: as symbols alone a fraction is two numbers in a row. */
function written(range: Range, text: string): string {
  const part = range.cloneContents();
  const formulas = part.querySelectorAll<HTMLElement>(".formula.set[data-tex]");
  if (!formulas.length) return text;
  for (const shown of formulas) shown.replaceChildren(`$${shown.dataset.tex}$`);
  for (const block of part.querySelectorAll("p, li, div, tr, pre, blockquote")) block.append("\n");
  return part.textContent.replace(/\n{2,}/g, "\n");
}

/** A selection in a form is being edited, not read. */
function isField(element: Element | null): boolean {
  return !!element?.matches("input, textarea, select, [contenteditable]");
}
