/** The documents of a project: a table to search in, whose rows expand to the chunks of a document. */

import type { Client } from "../api/client";
import type { components } from "../api/schema";
import { append, type Child, h } from "../dom/elements";
import { renderMarkdown } from "../markdown/markdown";
import { errorMessage } from "./errors";
import { formatTime, renderTable, Section } from "./section";

type Schemas = components["schemas"];
type LibraryDocument = Schemas["Document"];

const MAX_ROWS = 200;

export class DocumentTable {
  readonly #searchField = h("input", {
    type: "search",
    "aria-label": "Find a document",
    placeholder: "Find a document",
    on: { input: () => this.#render() },
  });
  readonly #section = new Section("Documents", "No documents yet: run `citewell ingest PATH`.", this.#searchField);
  readonly element = this.#section.element;
  #documents: LibraryDocument[] = [];
  #client: Client | null = null;

  show(documents: LibraryDocument[], client: Client): void {
    this.#documents = documents;
    this.#client = client;
    this.#render();
  }

  #render(): void {
    const query = this.#searchField.value.trim().toLowerCase();
    const matches = this.#documents.filter(({ filename, title, status }) =>
      `${filename} ${title ?? ""} ${status}`.toLowerCase().includes(query),
    );
    this.#searchField.hidden = !this.#documents.length;
    this.#section.show([matches, this.#documents.length], () => {
      if (!this.#documents.length) return [];
      if (!matches.length) return [h("p", { class: "quiet" }, "No document matches.")];
      const rows = matches.slice(0, MAX_ROWS).map((document) => renderDocument(document, () => this.#loadChunks(document)));
      const isCut = matches.length > MAX_ROWS;
      return [
        renderTable(["Document", "File", "Chunks", "Status", "Updated"], rows),
        isCut && h("p", { class: "quiet" }, `Showing the first ${MAX_ROWS} of ${matches.length} documents. Search to find the others.`),
      ];
    });
  }

  async #loadChunks(document: LibraryDocument): Promise<Child[]> {
    const { text, chunks } = await this.#client!.get<Schemas["DocumentDetail"]>(`/api/v1/documents/${document.documentId}?text=true`);
    const characters = Array.from(text ?? ""); // offsets count characters, not UTF-16 units
    return chunks.map(({ chunkIndex, section, page, line, lastLine, start, end }) => {
      const place = h("span", { class: "quiet" }, page ? `page ${page}` : `lines ${line}–${lastLine}`);
      const number = chunkIndex === null ? "" : `${chunkIndex + 1}. `; // a document that is stored whole has no chunks
      const summary = h("summary", { dir: "auto" }, `${number}${section || titleOf(document)} `, place);
      return h("details", {}, summary, renderMarkdown(characters.slice(start, end).join("")));
    });
  }
}

function titleOf({ title, filename }: LibraryDocument): string {
  return title || filename;
}

function renderDocument(document: LibraryDocument, loadChunks: () => Promise<Child[]>): HTMLTableRowElement {
  const { chunkCount, error, filename, status, updatedAt, url } = document;
  const title = titleOf(document);
  const row: HTMLTableRowElement = h(
    "tr",
    {},
    h(
      "td",
      {},
      url ? h("a", { href: url, dir: "auto" }, title) : h("bdi", {}, title),
      error && h("p", { class: "bad", dir: "auto" }, error),
    ),
    h("td", {}, h("bdi", { class: "file" }, filename)),
    h("td", {}, chunkCount ? createChunksButton(chunkCount, () => row, loadChunks) : "0"),
    h("td", { class: `status ${status.toLowerCase()}` }, status.toLowerCase()),
    h("td", {}, formatTime(updatedAt)),
  );
  return row;
}

/** A button that shows and hides the chunks of a document, in a row below its own. */
function createChunksButton(count: number, row: () => HTMLElement, loadChunks: () => Promise<Child[]>): HTMLButtonElement {
  const cell = h("td", { colspan: "5" });
  const chunksRow = h("tr", { class: "chunks" }, cell);
  const toggle = async (): Promise<void> => {
    const isOpen = !chunksRow.isConnected;
    button.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return chunksRow.remove();
    row().after(chunksRow);
    const chunks = await loadChunks().catch((error: unknown) => [h("p", { class: "bad" }, errorMessage(error))]);
    cell.replaceChildren();
    append(cell, ...chunks);
  };
  const button = h(
    "button",
    { type: "button", "aria-expanded": "false", title: "Show the chunks", on: { click: () => void toggle() } },
    String(count),
  );
  return button;
}
