/** What stands inside a paragraph: emphasis, code, formulas, links, citations. In time that grows with its length. */

import type { Range, Rendering } from "./markdown";
import { formula, setFormula } from "./math";
import { add, h, safeUrl } from "./safe";

export interface Inline {
  /** Show a line of Markdown in an element. */
  into(parent: Node, text: string): void;
  /** Show text as it stands, as in code. */
  verbatim(parent: Node, text: string): void;
  /** Set a formula, unless the text is for whoever hears it. */
  set(shown: HTMLElement): void;
  /** Take notice of ranges that begin or end in what is not shown. */
  note(text: string): void;
}

const ANY_MARK = /[\uE000-\uE1FF]/g;

export function withoutMarks(text: string, instead = ""): string {
  return text.replace(ANY_MARK, instead);
}

type Token =
  | { kind: "text"; text: string }
  | { kind: "node"; make: () => Node }
  | { kind: "open" | "close"; name: "em" | "strong" | "del" }
  | { kind: "run"; mark: string; size: number; opens: boolean; closes: boolean };

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
const BARE = /https?:\/\/[^\s<>"'`*|\uE000-\uE1FF]*[^\s<>"'`*|.,;:!?()[\]{}\uE000-\uE1FF]/iy;
const BREAK = /<br ?\/?>|(?: {2,20}|\\)\n/iy;
const CITATION = /\[(\d{1,4})\]/y;
const TARGET = /\(\s*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
// `$x$`, but neither "$5 or $6" nor "$HOME/$USER"; `$$ x $$`; and, as models write, `\(x\)` and `\[x\]`.
const FORMULA = /(?<![\w$])\$(?=[^\s$\d]|\d[^$`]*[\\^_={]|\d[^\s$`]*\$(?!\w))([^$`]*[^\s$\\`])\$(?!(?!(?:th|st|nd|rd)\b)\w|\/(?!\$)|[({])/y;
const DISPLAYED = /\$\$\s*([^$`]{1,1000}?)\s*\$\$(?!\$)/y;
const ROUND = /\\\(((?:[^\\]|\\[^()[\]]){1,500})\\\)/y;
const SQUARE = /(?<![\w\])])\\\[((?:[^\\]|\\[^()[\]]){1,500})\\\]/y;
const LIKE_TEX = /[\\^_={+<>]|^\s*[a-z]\s*$/i;
const PLAIN = /(?:[^\\`*_~[\]!<&$h\n ]| (?=[^ \n]))+/y;
const FARTHEST_BACK = 60;
const DEEPEST = 2; // an image in a link

export function inline(rendering: Rendering): Inline {
  const open = new Set<number>();
  const times = new Map<number, number>();
  const ranges: readonly Range[] = rendering.ranges ?? [];

  /** Text with its ranges: each private character turns one on or off. */
  function verbatim(parent: Node, text: string): void {
    for (const part of text.split(/([\uE000-\uE1FF])/)) {
      if (!part) continue;
      if (/^[\uE000-\uE1FF]$/.test(part)) turn(part.charCodeAt(0), parent);
      else if (!open.size) add(parent, part);
      else {
        const kinds = [...open].map((number) => ranges[number]?.kind).filter(Boolean);
        add(parent, h("mark", { class: kinds.join(" ") }, part));
      }
    }
  }

  function turn(code: number, parent: Node | null): void {
    const number = code & 0xff;
    if (code < 0xe100) open.add(number);
    else if (open.delete(number)) {
      const range = ranges[number];
      if (parent && range) add(parent, rendering.behind?.(range));
    }
  }

  function formulaOf(tex: string): Node {
    const shown = formula(withoutMarks(tex), false);
    verbatim(shown, tex);
    set(shown);
    return shown;
  }

  function set(shown: HTMLElement): void {
    if (!rendering.plain) setFormula(shown);
  }

  function citation(number: number): Node | null {
    const time = times.get(number) ?? 0;
    const node = rendering.cite?.(number, time) ?? null;
    if (node) times.set(number, time + 1);
    return node;
  }

  function tokens(text: string, depth = 0): Token[] {
    const found: Token[] = [];
    const brackets = pairs(text);
    const ticks = new Ticks(text);
    let at = 0;
    const match = (pattern: RegExp, inner?: RegExp): RegExpExecArray | null => {
      pattern.lastIndex = at;
      const hit = pattern.exec(text);
      if (!hit || (inner && !inner.test(hit[1]!))) return null;
      at = pattern.lastIndex;
      return hit;
    };
    const put = (part: string): void => {
      const last = found.at(-1);
      if (last?.kind === "text") last.text += part;
      else found.push({ kind: "text", text: part });
    };
    // Made when its turn comes: a range may begin in what stands before it.
    const node = (make: () => Node): number => found.push({ kind: "node", make });
    while (at < text.length) {
      let hit: RegExpExecArray | null;
      const here = text[at]!;
      if ((hit = match(PLAIN))) put(hit[0]);
      else if (here === "`") {
        const [inner, next] = ticks.span(at);
        if (inner === null) put(text.slice(at, next));
        else {
          node(() => {
            const code = h("code", { dir: "ltr" });
            verbatim(code, inner);
            return code;
          });
        }
        at = next;
      } else if ((hit = match(BREAK))) node(() => h("br"));
      else if (here === "$" && ((hit = match(DISPLAYED, LIKE_TEX)) || (hit = match(FORMULA, /[\\^_={]|^[^\n]*$/)))) tex(hit[1]!);
      else if (here === "\\" && (hit = bracketed())) tex(hit[1]!);
      else if ((hit = match(ESCAPED))) put(hit[1]!);
      else if ((hit = match(ENTITY))) put(entity(hit));
      else if ((hit = match(AUTOLINK)) || (here === "h" && !/\w/.test(text[at - 1] ?? "") && (hit = match(BARE)))) {
        link(hit[1] ?? hit[0], withoutMarks(hit[1] ?? hit[0]));
      } else if (here === "[" && rendering.cite && text[brackets.get(at)! + 1] !== "(" && (hit = match(CITATION))) {
        const made = citation(Number(hit[1]));
        if (made) node(() => made);
        else put(hit[0]);
      } else if (here === "[" || (here === "!" && text[at + 1] === "[")) bracket(here === "!");
      else if ("*_~".includes(here)) run(here);
      else {
        put(here);
        at += 1;
      }
    }
    return found;

    function tex(inner: string): void {
      node(() => formulaOf(inner));
    }

    function bracketed(): RegExpExecArray | null {
      const start = at;
      const square = text[at + 1] === "[";
      const hit = match(square ? SQUARE : ROUND);
      if (hit && isTex(hit[1]!, square)) return hit;
      at = start;
      return null;
    }

    function link(words: string, address: string): void {
      const url = safeUrl(address);
      node(() => {
        const made = url ? h("a", { href: url }) : h("span");
        verbatim(made, words);
        return made;
      });
    }

    /** `[words](address)` and `![words](address)`: an image is told by its words and never loaded. */
    function bracket(image: boolean): void {
      const start = at + (image ? 1 : 0);
      const end = brackets.get(start);
      TARGET.lastIndex = (end ?? 0) + 1;
      const target = end === undefined || depth === DEEPEST ? null : TARGET.exec(text);
      if (!target) {
        put(text.slice(at, start + 1));
        at = start + 1;
        return;
      }
      const words = text.slice(start + 1, end);
      at = TARGET.lastIndex;
      const url = image ? null : safeUrl(withoutMarks(target[1] ?? target[2] ?? ""));
      const inner = tokens(words, depth + 1);
      node(() => {
        const made = url ? h("a", { href: url }) : h("span", image ? { class: "image" } : {});
        resolve(inner, made);
        return made;
      });
    }

    function run(mark: string): void {
      const start = at;
      while (text[at] === mark) at += 1;
      const size = at - start;
      const before = beside(text, start - 1, -1);
      const after = beside(text, at, 1);
      const left = isWord(after, before);
      const right = isWord(before, after);
      const inWord = mark === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
      if (size > 3 || inWord || (mark === "~" && size !== 2)) put(text.slice(start, at));
      else found.push({ kind: "run", mark, size, opens: left, closes: right });
    }
  }

  /** Pair up the runs of `*`, `_` and `~`, and build. */
  function resolve(found: Token[], parent: Node): void {
    const before: Token[][] = found.map(() => []);
    const left = found.map((token) => (token.kind === "run" ? token.size : 0));
    const openers: number[] = [];
    found.forEach((token, number) => {
      if (token.kind !== "run") return;
      while (token.closes && left[number]! > 0) {
        let back = openers.length - 1;
        for (let steps = 0; back >= 0 && steps < FARTHEST_BACK; back -= 1, steps += 1) {
          const opener = found[openers[back]!]!;
          if (opener.kind === "run" && opener.mark === token.mark && left[openers[back]!]! <= left[number]!) break;
        }
        if (back < 0 || openers.length - back > FARTHEST_BACK) break;
        const opener = openers[back]!;
        openers.length = back;
        const size = left[opener]!;
        for (const name of token.mark === "~"
          ? (["del"] as const)
          : size === 1
            ? (["em"] as const)
            : size === 2
              ? (["strong"] as const)
              : (["em", "strong"] as const)) {
          before[opener]!.push({ kind: "open", name });
          before[number]!.unshift({ kind: "close", name });
        }
        left[number]! -= size;
        left[opener] = 0;
      }
      if (token.opens && left[number]! > 0) openers.push(number);
    });
    const into: Node[] = [parent];
    const build = (token: Token): void => {
      const top = into.at(-1)!;
      if (token.kind === "text") verbatim(top, token.text);
      else if (token.kind === "node") add(top, token.make());
      else if (token.kind === "open") into.push(top.appendChild(h(token.name)));
      else if (token.kind === "close" && into.length > 1) into.pop();
    };
    found.forEach((token, number) => {
      // What a run closes comes first, what is left of it is text, and then what it opens.
      before[number]!.filter((one) => one.kind === "close").forEach(build);
      if (token.kind === "run") build({ kind: "text", text: token.mark.repeat(left[number]!) });
      else build(token);
      before[number]!.filter((one) => one.kind === "open").forEach(build);
    });
  }

  return {
    into: (parent, text) => resolve(tokens(text), parent),
    verbatim,
    set,
    note: (text) => {
      for (const mark of text.match(ANY_MARK) ?? []) turn(mark.charCodeAt(0), null);
    },
  };
}

/** Whether `\(…\)` or `\[…\]` holds a formula, and not words whose brackets somebody escaped. */
export function isTex(text: string, square: boolean): boolean {
  const plain = withoutMarks(text);
  if (/\\_/.test(plain) || (!/\\[a-z]/i.test(plain) && /[a-z]{4,} [a-z]{2,}/i.test(plain))) return false;
  return square ? /\\[a-z]{2,}|[\^=]|_\{?\w/i.test(plain) : LIKE_TEX.test(plain);
}

/** The next character that is not a private one; a space at the ends. */
function beside(text: string, at: number, step: 1 | -1): string {
  while (text[at] !== undefined && /[\uE000-\uE1FF]/.test(text[at]!)) at += step;
  return text[at] ?? " ";
}

/** Whether a run beside `near` clings to it: no space there, and no punctuation unless the other side is loose too. */
function isWord(near: string, far: string): boolean {
  if (/\s/.test(near)) return false;
  return !/\p{P}|\p{S}/u.test(near) || /\s|\p{P}|\p{S}/u.test(far);
}

function entity([whole, name, decimal, hex]: RegExpExecArray): string {
  if (name) return ENTITIES[name] ?? whole;
  const code = decimal ? Number(decimal) : parseInt(hex!, 16);
  const hidden = code > 0x10ffff || code < 0x20 || (code >= 0xd800 && code < 0xe200);
  return hidden ? whole : String.fromCodePoint(code);
}

/** Where each bracket that is opened closes. */
function pairs(text: string): Map<number, number> {
  const found = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) found.set(open.pop()!, at);
  }
  return found;
}

/** Runs of backticks: a span of code ends at the next run that is as long as the one that began it. */
class Ticks {
  #sizes = new Map<number, number>();
  /** The places of the runs of each size, the last first. */
  #places = new Map<number, number[]>();

  constructor(private readonly text: string) {
    for (const { index, 0: run } of [...text.matchAll(/`+/g)].reverse()) {
      this.#sizes.set(index, run.length);
      const places = this.#places.get(run.length);
      if (places) places.push(index);
      else this.#places.set(run.length, [index]);
    }
  }

  /** The code in a span that begins here, or null, and where to go on. */
  span(at: number): [string | null, number] {
    const size = this.#sizes.get(at) ?? 1;
    const places = this.#places.get(size) ?? [];
    while (places.length && places.at(-1)! <= at) places.pop();
    const end = places.at(-1);
    if (end === undefined) return [null, at + size];
    const inner = this.text.slice(at + size, end).replace(/\n/g, " ");
    return [/^ .* $/s.test(inner) && inner.trim() ? inner.slice(1, -1) : inner, end + size];
  }
}
