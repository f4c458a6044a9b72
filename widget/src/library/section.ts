/** Building blocks of the library page: sections, tables and counts. */

import { append, type Child, h } from "../dom/elements";

/** A section of the page. It is drawn again only when its data changes, so that a reader's selection stays. */
export class Section {
  readonly element: HTMLElement;
  readonly #body = h("div");
  #shown = "";

  constructor(
    title: string,
    private readonly emptyText: string,
    ...before: Child[]
  ) {
    this.element = h("section", {}, h("h2", {}, title), ...before, this.#body);
  }

  show(data: unknown, render: () => Child[]): void {
    const json = JSON.stringify(data);
    if (json === this.#shown) return;
    this.#shown = json;
    const children = render();
    this.#body.replaceChildren();
    append(this.#body, ...(children.length ? children : [h("p", { class: "quiet" }, this.emptyText)]));
  }
}

export function renderTable(heads: string[], rows: HTMLTableRowElement[]): HTMLElement {
  const head = h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)));
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": heads.join(", ") },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
  );
}

/** A table row of text cells. */
export function textRow(...cells: string[]): HTMLTableRowElement {
  return h("tr", {}, ...cells.map((text) => h("td", { dir: "auto" }, text)));
}

/** "1 document", "2 documents". */
export function renderCount(count: number, singular: string, plural = singular): HTMLElement {
  return h("li", {}, h("strong", {}, String(count)), ` ${count === 1 ? singular : plural}`);
}

export function formatTime(timestamp: string): string {
  return new Date(timestamp).toLocaleString();
}
