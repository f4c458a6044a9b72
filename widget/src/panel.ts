/** The source behind a citation: the chunk in its document, with the cited words marked. */

import { type Client, type CitedChunk, Problem } from "./client";
import { CLOSE, OUT } from "./icons";
import { render, type Range } from "./markdown";
import type { Source } from "./model";
import { add, h, icon } from "./safe";
import type { Words } from "./words";

const ROOMY = 1000; // pixels; style.css says the same

export class Panel {
  readonly element: HTMLDialogElement;
  readonly #body = h("div", { class: "panel-body", tabindex: "0" });
  readonly #title = h("h2", { tabindex: "-1", dir: "auto" });
  readonly #facts = h("div", { class: "facts" });
  #from: HTMLElement | null = null;
  #wanted = 0;
  readonly #sized: ResizeObserver;

  constructor(
    private readonly client: Client,
    private readonly say: Words,
  ) {
    const close = h(
      "button",
      { type: "button", class: "plain", "aria-label": say("close"), on: { click: () => this.close() } },
      icon(CLOSE),
    );
    this.element = h(
      "dialog",
      { class: "panel", "aria-label": say("source", { n: "" }).trim() },
      h("header", {}, this.#title, close),
      this.#facts,
      this.#body,
    );
    this.#sized = new ResizeObserver(() => this.#cover());
  }

  get isOpen(): boolean {
    return this.element.open;
  }

  /** At once, and not with the event that says so: by then the reader may be typing. */
  close(): void {
    if (!this.element.open) return;
    this.element.close();
    this.#cover();
    this.#from?.focus();
  }

  async show(source: Source, time: number, from: HTMLElement): Promise<void> {
    this.#from = from;
    const wanted = ++this.#wanted;
    this.#title.replaceChildren(source.chapterTitle);
    this.#facts.replaceChildren();
    this.#body.replaceChildren(h("p", { class: "quiet" }, this.say("loading")));
    this.#open();
    this.#title.focus();
    try {
      const chunk = source.chunkId ? await this.client.citation(source.chunkId) : null;
      if (wanted === this.#wanted) this.#fill(source, time, chunk);
    } catch (error) {
      if (wanted !== this.#wanted) return;
      const gone = error instanceof Problem && error.failure.kind === "refused";
      const why = gone
        ? this.say("unknown")
        : this.say(error instanceof Problem && error.failure.kind === "offline" ? "offline" : "unavailable");
      this.#body.replaceChildren(h("p", { class: "warn" }, why), render(source.excerpt));
    }
  }

  /** Never modal: the page around a widget must not stand still for it. */
  #open(): void {
    if (this.element.open) return;
    this.element.show();
    this.#sized.observe(this.element.parentElement!);
    this.#cover();
  }

  /** Beside the conversation where there is room, over it where there is not; what is covered cannot be reached then. */
  #cover(): void {
    const around = this.element.parentElement;
    const beneath = this.element.previousElementSibling as HTMLElement | null;
    if (around && beneath) beneath.inert = this.element.open && around.clientWidth < ROOMY;
    if (!this.element.open) this.#sized.disconnect();
  }

  #fill(source: Source, time: number, chunk: CitedChunk | null): void {
    const say = this.say;
    const path = chunk?.headings?.length ? chunk.headings : [source.section].filter(Boolean);
    const facts = [
      chunk?.source ?? source.sourceFile,
      (chunk?.page ?? source.page) ? say("page", { n: (chunk?.page ?? source.page)! }) : source.line && say("line", { n: source.line }),
      chunk?.chunkIndex != null && chunk.chunkCount && say("part", { n: chunk.chunkIndex + 1, m: chunk.chunkCount }),
      source.score !== null && say("match", { n: Math.round(source.score * 100) }),
    ].filter((fact): fact is string => !!fact);
    this.#facts.replaceChildren();
    if (path.length) add(this.#facts, h("p", { class: "path", dir: "auto" }, path.join(" › ")));
    add(this.#facts, h("ul", {}, ...facts.map((fact) => h("li", {}, h("bdi", {}, fact)))));
    const url = source.url ?? chunk?.source_url;
    if (url) add(this.#facts, h("a", { href: url, class: "live" }, say("live"), icon(OUT)));
    const status = chunk?.status ?? source.status;
    if (status && status !== "valid") add(this.#facts, h("p", { class: "warn" }, say(status)));
    this.#body.replaceChildren(chunk?.chunkText != null ? render(...inContext(chunk, source, time)) : render(source.excerpt));
    this.#body.scrollTop = 0;
    const cited = this.#body.querySelector(".cited") ?? this.#body.querySelector("mark:not(.context)");
    cited?.scrollIntoView({ block: "center" });
  }
}

/** The chunk between what stands around it, and the stretches of it that the answer rests on. */
export function inContext(chunk: CitedChunk, source: Source, time: number): [string, { ranges: Range[] }] {
  const text = chunk.chunkText ?? "";
  const before = balanced(chunk.before ?? "");
  const after = chunk.after ?? "";
  const ranges: Range[] = [];
  if (before) ranges.push({ start: 0, end: before.length, kind: "context" });
  const seen = new Set<string>();
  source.quotes.forEach((quote, number) => {
    const start = quote ? text.indexOf(quote) : -1;
    const cited = number === time;
    if (!quote || start < 0 || (seen.has(quote) && !cited)) return;
    seen.add(quote);
    ranges.push({ start: before.length + start, end: before.length + start + quote.length, kind: cited ? "cited" : "also" });
  });
  const end = before.length + text.length;
  if (after) ranges.push({ start: end, end: end + after.length, kind: "context" });
  return [before + text + after, { ranges }];
}

/** Without the rest of a code block that began further up: its end would look like a beginning. */
function balanced(before: string): string {
  for (const mark of [/^\s*(?:`{3,}|~{3,}).*$/gm, /^\s*\$\$\s*$/gm]) {
    const found = [...before.matchAll(mark)];
    const first = found[0];
    if (first && found.length % 2) before = before.slice(first.index + first[0].length);
  }
  return before;
}
