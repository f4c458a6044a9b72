/** The panel with the source of a citation: the chunk within its document, with the cited words highlighted. */

import type { Source } from "../api/answer";
import type { ChunkDetail, Client } from "../api/client";
import { ApiError } from "../api/errors";
import { append, h, icon } from "../dom/elements";
import { CLOSE, EXTERNAL_LINK } from "../dom/icons";
import type { Translate } from "../i18n/translations";
import { type Range, renderMarkdown } from "../markdown/markdown";

const SIDE_BY_SIDE_WIDTH = 1000; // pixels; chat.css has the same number

export class SourcePanel {
  readonly element: HTMLDialogElement;
  readonly #body = h("div", { class: "panel-body", tabindex: "0" });
  readonly #title = h("h2", { tabindex: "-1", dir: "auto" });
  readonly #facts = h("div", { class: "facts" });
  readonly #resizeObserver = new ResizeObserver(() => this.#updateCover());
  #opener: HTMLElement | null = null;
  #request = 0;

  constructor(
    private readonly client: Client,
    private readonly t: Translate,
  ) {
    const close = h("button", { type: "button", class: "plain", "aria-label": t("close"), on: { click: () => this.close() } }, icon(CLOSE));
    this.element = h(
      "dialog",
      { class: "panel", "aria-label": t("source", { n: "" }).trim() },
      h("header", {}, this.#title, close),
      this.#facts,
      this.#body,
    );
  }

  get isOpen(): boolean {
    return this.element.open;
  }

  /** Moves the focus at once, not on the `close` event: by then the reader may be typing. */
  close(): void {
    if (!this.element.open) return;
    this.element.close();
    this.#updateCover();
    this.#opener?.focus();
  }

  /** Show a source at its k-th citation. `opener` gets the focus back when the panel closes. */
  async show(source: Source, occurrence: number, opener: HTMLElement): Promise<void> {
    this.#opener = opener;
    const request = ++this.#request;
    this.#title.replaceChildren(source.chapterTitle);
    this.#facts.replaceChildren();
    this.#body.replaceChildren(h("p", { class: "quiet" }, this.t("loading")));
    this.#open();
    this.#title.focus();
    try {
      const chunk = source.chunkId ? await this.client.citation(source.chunkId) : null;
      if (request === this.#request) this.#showChunk(source, occurrence, chunk);
    } catch (error) {
      if (request === this.#request) this.#showError(source, error);
    }
  }

  /** Not modal: the page around a widget stays usable. */
  #open(): void {
    if (this.element.open) return;
    this.element.show();
    this.#resizeObserver.observe(this.element.parentElement!);
    this.#updateCover();
  }

  /** Where the panel covers the conversation, the conversation is inert; where there is room, they stand side by side. */
  #updateCover(): void {
    const container = this.element.parentElement;
    const conversation = this.element.previousElementSibling as HTMLElement | null;
    if (container && conversation) conversation.inert = this.element.open && container.clientWidth < SIDE_BY_SIDE_WIDTH;
    if (!this.element.open) this.#resizeObserver.disconnect();
  }

  #showError(source: Source, error: unknown): void {
    const kind = error instanceof ApiError ? error.failure.kind : null;
    const reason = this.t(kind === "refused" ? "unknown" : kind === "offline" ? "offline" : "unavailable");
    this.#body.replaceChildren(h("p", { class: "warn" }, reason), renderMarkdown(source.excerpt));
  }

  #showChunk(source: Source, occurrence: number, chunk: ChunkDetail | null): void {
    this.#showFacts(source, chunk);
    const hasText = chunk?.chunkText != null;
    this.#body.replaceChildren(hasText ? renderMarkdown(...highlightQuotes(chunk, source, occurrence)) : renderMarkdown(source.excerpt));
    this.#body.scrollTop = 0;
    const cited = this.#body.querySelector(".cited") ?? this.#body.querySelector("mark:not(.context)");
    cited?.scrollIntoView({ block: "center" });
  }

  #showFacts(source: Source, chunk: ChunkDetail | null): void {
    const { t } = this;
    const headings = chunk?.headings?.length ? chunk.headings : [source.section].filter(Boolean);
    const page = chunk?.page ?? source.page;
    const url = source.url ?? chunk?.source_url;
    const status = chunk?.status ?? source.status;
    const facts = [
      chunk?.source ?? source.sourceFile,
      page ? t("page", { n: page }) : source.line && t("line", { n: source.line }),
      chunk?.chunkIndex != null && chunk.chunkCount && t("part", { n: chunk.chunkIndex + 1, m: chunk.chunkCount }),
      t("match", { n: Math.round(source.score * 100) }),
    ].filter((fact): fact is string => !!fact);
    this.#facts.replaceChildren();
    append(
      this.#facts,
      headings.length > 0 && h("p", { class: "path", dir: "auto" }, headings.join(" › ")),
      h("ul", {}, ...facts.map((fact) => h("li", {}, h("bdi", {}, fact)))),
      url && h("a", { href: url, class: "live" }, t("live"), icon(EXTERNAL_LINK)),
      status && status !== "valid" && h("p", { class: "warn" }, t(status)),
    );
  }
}

/** The chunk with the text around it, and the ranges of the quotes that the answer uses. */
export function highlightQuotes(chunk: ChunkDetail, source: Source, occurrence: number): [string, { ranges: Range[] }] {
  const text = chunk.chunkText ?? "";
  const before = withoutOpenBlock(chunk.before ?? "");
  const after = chunk.after ?? "";
  const ranges: Range[] = [];
  if (before) ranges.push({ start: 0, end: before.length, kind: "context" });
  const seen = new Set<string>();
  source.quotes.forEach((quote, index) => {
    const start = quote ? text.indexOf(quote) : -1;
    const isCited = index === occurrence;
    if (!quote || start < 0 || (seen.has(quote) && !isCited)) return;
    seen.add(quote);
    ranges.push({ start: before.length + start, end: before.length + start + quote.length, kind: isCited ? "cited" : "also" });
  });
  const end = before.length + text.length;
  if (after) ranges.push({ start: end, end: end + after.length, kind: "context" });
  return [before + text + after, { ranges }];
}

/** Drop the tail of a code block or formula that starts further up: its end would be read as a start. */
function withoutOpenBlock(before: string): string {
  for (const delimiter of [/^\s*(?:`{3,}|~{3,}).*$/gm, /^\s*\$\$\s*$/gm]) {
    const matches = [...before.matchAll(delimiter)];
    const first = matches[0];
    if (first && matches.length % 2) before = before.slice(first.index + first[0].length);
  }
  return before;
}
