/** Cuts a paragraph into text, nodes and runs of emphasis marks, in time that grows with its length. */

import { safeUrl } from "../dom/sanitize";
import { MARK_CLASS, withoutMarks } from "./range-marks";

export type EmphasisName = "em" | "strong" | "del";

export interface EmphasisRun {
  kind: "run";
  mark: string;
  size: number;
  canOpen: boolean;
  canClose: boolean;
}

export type Token = { kind: "text"; text: string } | { kind: "node"; create: () => Node } | EmphasisRun;

/** Creates the nodes that stand in a paragraph. */
export interface NodeFactory {
  code(text: string): Node;
  formula(tex: string): Node;
  lineBreak(): Node;
  link(text: string, url: string | null): Node;
  /** A link or the description of an image, with formatted text. */
  bracketed(tokens: Token[], url: string | null, isImage: boolean): Node;
  /** What to show for `[n]`; null leaves it as text. Undefined where nothing is cited. */
  citation: ((number: number) => Node | null) | undefined;
}

const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00A0",
  mdash: "—",
  ndash: "–",
  hellip: "…",
  rarr: "→",
  larr: "←",
  times: "×",
  deg: "°",
  middot: "·",
  copy: "©",
};
const ESCAPED = /\\([!-/:-@[-`{-~])/y;
const ENTITY = /&(?:([a-z]{2,6})|#(\d{1,7})|#x([\da-f]{1,6}));/iy;
const AUTOLINK = /<(https?:\/\/[^\s<>]*)>/iy;
const BARE_URL = new RegExp(`https?:\\/\\/[^\\s<>"'\`*|${MARK_CLASS}]*[^\\s<>"'\`*|.,;:!?()[\\]{}${MARK_CLASS}]`, "iy");
const LINE_BREAK = /<br ?\/?>|(?: {2,20}|\\)\n/iy;
const CITATION = /\[(\d{1,4})\]/y;
const LINK_TARGET = /\(\s*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
// `$x$`, but neither "$5 or $6" nor "$HOME/$USER"; `$$ x $$`; and, as LLMs write, `\(x\)` and `\[x\]`.
const FORMULA = /(?<![\w$])\$(?=[^\s$\d]|\d[^$`]*[\\^_={]|\d[^\s$`]*\$(?!\w))([^$`]*[^\s$\\`])\$(?!(?!(?:th|st|nd|rd)\b)\w|\/(?!\$)|[({])/y;
const DISPLAY_FORMULA = /\$\$\s*([^$`]{1,1000}?)\s*\$\$(?!\$)/y;
const ROUND_FORMULA = /\\\(((?:[^\\]|\\[^()[\]]){1,500})\\\)/y;
const SQUARE_FORMULA = /(?<![\w\])])\\\[((?:[^\\]|\\[^()[\]]){1,500})\\\]/y;
const LOOKS_LIKE_TEX = /[\\^_={+<>]|^\s*[a-z]\s*$/i;
const PLAIN_TEXT = /(?:[^\\`*_~[\]!<&$h\n ]| (?=[^ \n]))+/y;
const MARK = new RegExp(`[${MARK_CLASS}]`);
const MAX_DEPTH = 2; // an image in a link

export function tokenize(text: string, nodes: NodeFactory): Token[] {
  return new Tokenizer(text, nodes, 0).run();
}

class Tokenizer {
  readonly #tokens: Token[] = [];
  readonly #brackets: Map<number, number>;
  readonly #codeSpans: CodeSpans;
  #at = 0;

  constructor(
    private readonly text: string,
    private readonly nodes: NodeFactory,
    private readonly depth: number,
  ) {
    this.#brackets = matchBrackets(text);
    this.#codeSpans = new CodeSpans(text);
  }

  run(): Token[] {
    while (this.#at < this.text.length) this.#next();
    return this.#tokens;
  }

  #next(): void {
    const character = this.text[this.#at]!;
    const plain = this.#match(PLAIN_TEXT);
    if (plain) this.#addText(plain[0]);
    else if (character === "`") this.#readCode();
    else if (this.#match(LINE_BREAK)) this.#addNode(() => this.nodes.lineBreak());
    else if (
      !this.#readFormula(character) &&
      !this.#readEscape() &&
      !this.#readUrl(character) &&
      !this.#readCitation(character) &&
      !this.#readBracket(character) &&
      !this.#readEmphasis(character)
    ) {
      this.#addText(character);
      this.#at += 1;
    }
  }

  #match(pattern: RegExp, inner?: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.text);
    if (!match || (inner && !inner.test(match[1]!))) return null;
    this.#at = pattern.lastIndex;
    return match;
  }

  #addText(text: string): void {
    const last = this.#tokens.at(-1);
    if (last?.kind === "text") last.text += text;
    else this.#tokens.push({ kind: "text", text });
  }

  /** Nodes are created later, in order: a range may start in the text before one. */
  #addNode(create: () => Node): void {
    this.#tokens.push({ kind: "node", create });
  }

  #readCode(): void {
    const [code, next] = this.#codeSpans.read(this.#at);
    if (code === null) this.#addText(this.text.slice(this.#at, next));
    else this.#addNode(() => this.nodes.code(code));
    this.#at = next;
  }

  #readFormula(character: string): boolean {
    const match =
      character === "$"
        ? (this.#match(DISPLAY_FORMULA, LOOKS_LIKE_TEX) ?? this.#match(FORMULA, /[\\^_={]|^[^\n]*$/))
        : character === "\\"
          ? this.#matchBracketedFormula()
          : null;
    if (!match) return false;
    this.#addNode(() => this.nodes.formula(match[1]!));
    return true;
  }

  #matchBracketedFormula(): RegExpExecArray | null {
    const start = this.#at;
    const isSquare = this.text[start + 1] === "[";
    const match = this.#match(isSquare ? SQUARE_FORMULA : ROUND_FORMULA);
    if (match && isTex(match[1]!, isSquare)) return match;
    this.#at = start;
    return null;
  }

  #readEscape(): boolean {
    const escaped = this.#match(ESCAPED);
    const entity = escaped ? null : this.#match(ENTITY);
    if (escaped) this.#addText(escaped[1]!);
    if (entity) this.#addText(decodeEntity(entity));
    return !!(escaped ?? entity);
  }

  #readUrl(character: string): boolean {
    const startsWord = character === "h" && !/\w/.test(this.text[this.#at - 1] ?? "");
    const match = this.#match(AUTOLINK) ?? (startsWord ? this.#match(BARE_URL) : null);
    if (!match) return false;
    const address = match[1] ?? match[0];
    const url = safeUrl(withoutMarks(address));
    this.#addNode(() => this.nodes.link(address, url));
    return true;
  }

  #readCitation(character: string): boolean {
    const isLink = this.text[this.#brackets.get(this.#at)! + 1] === "(";
    const match = character === "[" && this.nodes.citation && !isLink ? this.#match(CITATION) : null;
    if (!match) return false;
    const node = this.nodes.citation!(Number(match[1]));
    if (node) this.#addNode(() => node);
    else this.#addText(match[0]);
    return true;
  }

  /** `[text](url)` and `![text](url)`. An image is never loaded; its description is shown. */
  #readBracket(character: string): boolean {
    const isImage = character === "!" && this.text[this.#at + 1] === "[";
    if (character !== "[" && !isImage) return false;
    const start = this.#at + (isImage ? 1 : 0);
    const end = this.#brackets.get(start);
    LINK_TARGET.lastIndex = (end ?? 0) + 1;
    const target = end === undefined || this.depth === MAX_DEPTH ? null : LINK_TARGET.exec(this.text);
    if (!target) {
      this.#addText(this.text.slice(this.#at, start + 1));
      this.#at = start + 1;
      return true;
    }
    this.#at = LINK_TARGET.lastIndex;
    const url = isImage ? null : safeUrl(withoutMarks(target[1] ?? target[2] ?? ""));
    const tokens = new Tokenizer(this.text.slice(start + 1, end), this.nodes, this.depth + 1).run();
    this.#addNode(() => this.nodes.bracketed(tokens, url, isImage));
    return true;
  }

  #readEmphasis(mark: string): boolean {
    if (!"*_~".includes(mark)) return false;
    const start = this.#at;
    while (this.text[this.#at] === mark) this.#at += 1;
    const size = this.#at - start;
    const before = characterBeside(this.text, start - 1, -1);
    const after = characterBeside(this.text, this.#at, 1);
    const isInWord = mark === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
    if (size > 3 || isInWord || (mark === "~" && size !== 2)) this.#addText(this.text.slice(start, this.#at));
    else this.#tokens.push({ kind: "run", mark, size, canOpen: isFlanking(after, before), canClose: isFlanking(before, after) });
    return true;
  }
}

/** Whether `\(…\)` or `\[…\]` holds a formula, and not words whose brackets were escaped. */
export function isTex(text: string, isSquare: boolean): boolean {
  const plain = withoutMarks(text);
  if (/\\_/.test(plain) || (!/\\[a-z]/i.test(plain) && /[a-z]{4,} [a-z]{2,}/i.test(plain))) return false;
  return isSquare ? /\\[a-z]{2,}|[\^=]|_\{?\w/i.test(plain) : LOOKS_LIKE_TEX.test(plain);
}

/** The nearest character that is not a range mark; a space at the ends of the text. */
function characterBeside(text: string, at: number, step: 1 | -1): string {
  while (text[at] !== undefined && MARK.test(text[at]!)) at += step;
  return text[at] ?? " ";
}

/** CommonMark's flanking rule: `near` is no space, and punctuation only if `far` is a space or punctuation too. */
function isFlanking(near: string, far: string): boolean {
  if (/\s/.test(near)) return false;
  return !/\p{P}|\p{S}/u.test(near) || /\s|\p{P}|\p{S}/u.test(far);
}

function decodeEntity([whole, name, decimal, hex]: RegExpExecArray): string {
  if (name) return ENTITIES[name] ?? whole;
  const code = decimal ? Number(decimal) : parseInt(hex!, 16);
  const isForbidden = code > 0x10ffff || code < 0x20 || (code >= 0xd800 && code < 0xe200);
  return isForbidden ? whole : String.fromCodePoint(code);
}

/** For the place of each opening bracket: the place of its closing bracket. */
function matchBrackets(text: string): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) pairs.set(open.pop()!, at);
  }
  return pairs;
}

/** Code spans: each ends at the next run of as many backticks as it starts with. */
class CodeSpans {
  readonly #sizes = new Map<number, number>();
  /** The places of the runs of each size, the last one first. */
  readonly #places = new Map<number, number[]>();

  constructor(private readonly text: string) {
    for (const { index, 0: run } of [...text.matchAll(/`+/g)].reverse()) {
      this.#sizes.set(index, run.length);
      const places = this.#places.get(run.length);
      if (places) places.push(index);
      else this.#places.set(run.length, [index]);
    }
  }

  /** The code of a span that starts here (null if none does), and where to continue. */
  read(at: number): [string | null, number] {
    const size = this.#sizes.get(at) ?? 1;
    const places = this.#places.get(size) ?? [];
    while (places.length && places.at(-1)! <= at) places.pop();
    const end = places.at(-1);
    if (end === undefined) return [null, at + size];
    const code = this.text.slice(at + size, end).replace(/\n/g, " ");
    return [/^ .* $/s.test(code) && code.trim() ? code.slice(1, -1) : code, end + size];
  }
}
