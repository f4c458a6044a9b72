/** Renders the text of a paragraph: emphasis, code, formulas, links and citations. */

import { append, h } from "../dom/elements";
import { createFormula, typesetFormula } from "./formula";
import { type Range, readMark, splitAtMarks, withoutMarks } from "./range-marks";
import { type EmphasisName, type EmphasisRun, type NodeFactory, type Token, tokenize } from "./tokenizer";

export interface MarkdownOptions {
  /** What to show for `[n]` where it occurs for the k-th time (from 0); null leaves it as text. */
  cite?: ((number: number, occurrence: number) => Node | null) | undefined;
  ranges?: Range[];
  /** What to show after a range. */
  renderAfter?: (range: Range) => Node | null;
  /** Leave formulas as TeX, for screen readers. */
  plain?: boolean;
}

const MAX_OPENERS_TO_SEARCH = 60;

export class InlineRenderer implements NodeFactory {
  readonly citation: NodeFactory["citation"];
  readonly #options: MarkdownOptions;
  readonly #openRanges = new Set<number>();
  readonly #occurrences = new Map<number, number>();

  constructor(options: MarkdownOptions) {
    this.#options = options;
    if (options.cite) this.citation = (number) => this.#cite(number);
  }

  /** Render Markdown text into an element. */
  render(parent: Node, text: string): void {
    this.#renderTokens(parent, tokenize(text, this));
  }

  /** Render text as it is, as in code; only its ranges are highlighted. */
  renderVerbatim(parent: Node, text: string): void {
    for (const part of splitAtMarks(text)) {
      if (readMark(part)) this.#toggleRange(part, parent);
      else if (!this.#openRanges.size) append(parent, part);
      else {
        const kinds = [...this.#openRanges].map((index) => this.#options.ranges?.[index]?.kind).filter(Boolean);
        append(parent, h("mark", { class: kinds.join(" ") }, part));
      }
    }
  }

  /** Keep track of ranges that start or end in text that is not shown. */
  skip(text: string): void {
    for (const part of splitAtMarks(text)) this.#toggleRange(part, null);
  }

  typeset(formula: HTMLElement): void {
    if (!this.#options.plain) typesetFormula(formula);
  }

  code(text: string): Node {
    const element = h("code", { dir: "ltr" });
    this.renderVerbatim(element, text);
    return element;
  }

  formula(tex: string): Node {
    const element = createFormula(withoutMarks(tex), "inline");
    this.renderVerbatim(element, tex);
    this.typeset(element);
    return element;
  }

  lineBreak(): Node {
    return h("br");
  }

  link(text: string, url: string | null): Node {
    const element = url ? h("a", { href: url }) : h("span");
    this.renderVerbatim(element, text);
    return element;
  }

  bracketed(tokens: Token[], url: string | null, isImage: boolean): Node {
    const element = url ? h("a", { href: url }) : h("span", isImage ? { class: "image" } : {});
    this.#renderTokens(element, tokens);
    return element;
  }

  #cite(number: number): Node | null {
    const occurrence = this.#occurrences.get(number) ?? 0;
    const node = this.#options.cite?.(number, occurrence) ?? null;
    if (node) this.#occurrences.set(number, occurrence + 1);
    return node;
  }

  #toggleRange(part: string, parent: Node | null): void {
    const mark = readMark(part);
    if (mark?.isStart) this.#openRanges.add(mark.index);
    else if (mark && this.#openRanges.delete(mark.index)) {
      const range = this.#options.ranges?.[mark.index];
      if (parent && range) append(parent, this.#options.renderAfter?.(range));
    }
  }

  #renderTokens(parent: Node, tokens: Token[]): void {
    const emphasis = pairEmphasis(tokens);
    const parents: Node[] = [parent];
    tokens.forEach((token, index) => {
      const { closes, opens, rest } = emphasis[index]!;
      for (let count = 0; count < closes && parents.length > 1; count += 1) parents.pop();
      const top = parents.at(-1)!;
      if (token.kind === "text") this.renderVerbatim(top, token.text);
      else if (token.kind === "node") append(top, token.create());
      else this.renderVerbatim(top, token.mark.repeat(rest));
      for (const name of opens) parents.push(parents.at(-1)!.appendChild(h(name)));
    });
  }
}

/** What a run of `*`, `_` or `~` does: first it closes elements, then what is left of it is text, then it opens elements. */
interface Emphasis {
  closes: number;
  rest: number;
  opens: EmphasisName[];
}

/** Pair up the runs of emphasis marks. */
function pairEmphasis(tokens: Token[]): Emphasis[] {
  const emphasis = tokens.map((token): Emphasis => ({ closes: 0, rest: token.kind === "run" ? token.size : 0, opens: [] }));
  const openers: number[] = [];
  tokens.forEach((token, index) => {
    if (token.kind !== "run") return;
    const closer = emphasis[index]!;
    while (token.canClose && closer.rest > 0) {
      const position = findOpener(tokens, emphasis, openers, token, closer.rest);
      if (position < 0) break;
      const opener = emphasis[openers[position]!]!;
      openers.length = position;
      const names = elementsFor(token.mark, opener.rest);
      opener.opens.push(...names);
      closer.closes += names.length;
      closer.rest -= opener.rest;
      opener.rest = 0;
    }
    if (token.canOpen && closer.rest > 0) openers.push(index);
  });
  return emphasis;
}

/** The place in `openers` of the nearest run that this one can close; -1 if there is none near enough. */
function findOpener(tokens: Token[], emphasis: Emphasis[], openers: number[], { mark }: EmphasisRun, size: number): number {
  const last = Math.max(0, openers.length - MAX_OPENERS_TO_SEARCH);
  for (let position = openers.length - 1; position >= last; position -= 1) {
    const opener = tokens[openers[position]!]!;
    if (opener.kind === "run" && opener.mark === mark && emphasis[openers[position]!]!.rest <= size) return position;
  }
  return -1;
}

function elementsFor(mark: string, size: number): EmphasisName[] {
  if (mark === "~") return ["del"];
  if (size === 1) return ["em"];
  return size === 2 ? ["strong"] : ["em", "strong"];
}
