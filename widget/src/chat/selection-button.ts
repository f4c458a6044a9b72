/** The button that appears beside selected text, to ask about that text only. */

import { isBlank } from "../conversation/limits";
import { h, icon } from "../dom/elements";
import { QUOTE } from "../dom/icons";

const MIN_LENGTH = 3;

export class SelectionButton {
  readonly element: HTMLButtonElement;
  #text = "";

  constructor(
    private readonly container: Element,
    label: string,
    onSelect: (text: string) => void,
  ) {
    const use = (event: Event): void => {
      event.preventDefault(); // keeps the selection and the focus
      const text = this.#text;
      this.#hide();
      getSelection()?.removeAllRanges();
      onSelect(text);
    };
    this.element = h("button", { type: "button", class: "about", hidden: true, on: { pointerdown: use, click: use } }, icon(QUOTE), label);
    document.addEventListener("selectionchange", this.#update);
    document.addEventListener("scroll", this.#hide, { capture: true, passive: true });
  }

  destroy(): void {
    document.removeEventListener("selectionchange", this.#update);
    document.removeEventListener("scroll", this.#hide, { capture: true });
    this.element.remove();
  }

  #hide = (): void => {
    this.element.hidden = true;
  };

  #update = (): void => {
    const selection = getSelection();
    const range = selection?.rangeCount ? selection.getRangeAt(0) : null;
    const text = range ? selectedText(range, selection!.toString()).trim() : "";
    const inside = range && this.container.contains(range.commonAncestorContainer) && !isField(document.activeElement);
    // A selection in a shadow tree, such as the widget itself, is collapsed as seen from the page.
    if (!range || range.collapsed || !inside || text.length < MIN_LENGTH || isBlank(text)) return this.#hide();
    this.#text = text;
    this.element.hidden = false;
    this.#placeAt(range.getBoundingClientRect());
  };

  #placeAt(selection: DOMRect): void {
    const own = this.element.getBoundingClientRect();
    const top =
      selection.top > own.height + 8 ? selection.top - own.height - 6 : Math.min(selection.bottom + 6, innerHeight - own.height - 4);
    this.element.style.left = `${Math.min(Math.max(4, selection.left), innerWidth - own.width - 4)}px`;
    this.element.style.top = `${top}px`;
  }
}

/** The selected text with formulas as TeX: as symbols only, a fraction would be two numbers in a row. */
function selectedText(range: Range, text: string): string {
  const part = range.cloneContents();
  const formulas = part.querySelectorAll<HTMLElement>(".formula.set[data-tex]");
  if (!formulas.length) return text;
  for (const formula of formulas) formula.replaceChildren(`$${formula.dataset.tex}$`);
  for (const block of part.querySelectorAll("p, li, div, tr, pre, blockquote")) block.append("\n");
  return part.textContent.replace(/\n{2,}/g, "\n");
}

function isField(element: Element | null): boolean {
  return !!element?.matches("input, textarea, select, [contenteditable]");
}
