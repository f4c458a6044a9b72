/**
 * Markdown to elements, for whatever is shown: an answer that grows, one that is done or restored, an excerpt, a
 * source. It reads the part of Markdown that books use; all else, HTML included, is shown as the text it is.
 */

import { inline, type Inline, isTex, withoutMarks } from "./inline";
import { formula } from "./math";
import { add, h } from "./safe";

/** A stretch of the text that is shown in a way of its own. */
export interface Range {
  start: number;
  end: number;
  kind: string;
}

export interface Rendering {
  /** What to show for `[n]`, the k-th time it stands there (from 0); null leaves it as text. */
  cite?: ((number: number, time: number) => Node | null) | undefined;
  ranges?: Range[];
  /** Leave formulas as they are written: for whoever hears the text. */
  plain?: boolean;
  /** What to show behind a range. */
  behind?: (range: Range) => Node | null;
}

const DEEPEST = 12;
const OPEN = 0xe000;
const CLOSE = 0xe100;
const MOST_RANGES = 255;
const MARKS = "[\uE000-\uE1FF]";
const AT_FRONT = new RegExp(`^(${MARKS}+)(\\s*(?:(?:[-*+>]|\\d{1,9}[.)]|#{1,6})\\s+|\\|\\s*)?)`);

export function render(text: string, rendering: Rendering = {}): DocumentFragment {
  const shown = document.createDocumentFragment();
  blocks(marked(text, rendering.ranges ?? []).split(/\r\n|\n|\r/), shown, inline(rendering), 0);
  return shown;
}

/** The text with a private character where each range begins and ends. They travel through as text does. */
function marked(text: string, ranges: Range[]): string {
  const at = ranges.slice(0, MOST_RANGES).flatMap(({ start, end }, number) =>
    end <= start
      ? []
      : [
          { place: start, mark: String.fromCharCode(OPEN + number), rank: 1 },
          { place: end, mark: String.fromCharCode(CLOSE + number), rank: 0 },
        ],
  );
  at.sort((a, b) => a.place - b.place || a.rank - b.rank);
  let done = 0;
  let whole = "";
  for (const { place, mark } of at) {
    whole += withoutMarks(text.slice(done, place), "\uFFFD") + mark;
    done = place;
  }
  return whole + withoutMarks(text.slice(done), "\uFFFD");
}

function blocks(lines: string[], parent: Node, say: Inline, depth: number): void {
  let paragraph: string[] = [];
  const flush = (): void => {
    if (paragraph.length) say.into(parent.appendChild(h("p", { dir: "auto" })), paragraph.join("\n"));
    paragraph = [];
  };
  for (let at = 0; at < lines.length;) {
    const line = behindFront(lines[at]!);
    const plain = withoutMarks(line);
    if (!plain.trim()) {
      say.note(line);
      flush();
      at += 1;
      continue;
    }
    const front = begins(lines, at, line, plain);
    if (front !== null) {
      paragraph.push(line.slice(0, front));
      lines[at] = line.slice(front);
      continue;
    }
    const read = depth < DEEPEST ? block(lines, at, plain, paragraph.length > 0) : null;
    if (!read) {
      paragraph.push(line);
      at += 1;
      continue;
    }
    if (read.underlines) {
      const title = paragraph.join(" ");
      paragraph = [];
      say.into(parent.appendChild(h("p", { class: "title", dir: "auto" })), title);
    }
    flush();
    read.show(parent, say, depth);
    at = read.next;
  }
  flush();
}

/** Where in a line of words a formula begins that goes on in the next lines. */
function begins(lines: string[], at: number, line: string, plain: string): number | null {
  if (!plain.trimEnd().endsWith("$$") || plain.indexOf("$$") !== plain.lastIndexOf("$$")) return null;
  if (!/^[^>|]*\w/.test(plain)) return null;
  const place = line.lastIndexOf("$$");
  const closed = lines.slice(at + 1, at + MOST_LINES).find((next) => next.includes("$$") || !withoutMarks(next).trim());
  return place > 0 && closed?.includes("$$") ? place : null;
}

/** A range that begins before a list mark begins behind it, so that the mark is still seen as one. */
function behindFront(line: string): string {
  return line.replace(AT_FRONT, "$2$1");
}

interface Block {
  next: number;
  show(parent: Node, say: Inline, depth: number): void;
  /** The paragraph before it is a title. */
  underlines?: true;
}

const FENCE = /^\s*(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}#{1,6}\s/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const ITEM = /^(\s*(?:[-*+]|(\d{1,9})[.)]))(\s+|$)/;
const ASIDE = /^\s*:::+\s*(\w[\w-]*)?\s*(.*)$/;
const MOST_CELLS = 50;
const MOST_LINES = 60; // of a formula

/** Whether a line parts the head of a table from its rows. */
function divides(line: string): boolean {
  const inner = line.trim().replace(/^\||\|$/g, "");
  return line.includes("-") && inner.split("|", MOST_CELLS).every((cell) => /^:?-+:?$/.test(cell.trim()));
}

function block(lines: string[], at: number, plain: string, inParagraph: boolean): Block | null {
  let found: RegExpExecArray | null;
  if ((found = FENCE.exec(plain))) return fenced(lines, at, found[1]!);
  const inFront = inParagraph || !/^(?: {4}|\t)/.test(plain);
  const set = inFront && /^\s*(?:\$\$|\\\[)/.test(plain) ? displayed(lines, at, plain) : null;
  if (set) return set;
  if (inParagraph && /^ {0,3}(=+|-+) *$/.test(plain)) return { next: at + 1, underlines: true, show: () => undefined };
  if (RULE.test(plain)) return { next: at + 1, show: (parent) => add(parent, h("hr")) };
  if (HEADING.test(plain)) return heading(lines, at);
  if (/^ {0,3}>/.test(plain)) return quoted(lines, at);
  if (/^\s*:::+\s*\w/.test(plain)) return aside(lines, at);
  if ((found = ITEM.exec(plain)) && (!inParagraph || (found[3] !== "" && (found[2] ?? "1") === "1"))) {
    return list(lines, at, found[2] !== undefined);
  }
  if (isTable(lines, at, plain)) return table(lines, at);
  if (!inParagraph && /^(?: {4}|\t)/.test(plain)) return indented(lines, at);
  return null;
}

function fenced(lines: string[], at: number, ticks: string): Block {
  let end = at + 1;
  const closes = (line: string): boolean => {
    const found = /^\s*(`{3,}|~{3,})\s*(?:\[\d+\]\s*)*$/.exec(withoutMarks(line));
    return !!found && found[1]!.startsWith(ticks);
  };
  while (end < lines.length && !closes(lines[end]!)) end += 1;
  return {
    next: end + 1,
    show: (parent, say) => {
      say.note(lines[at]!);
      code(parent, say, lines.slice(at + 1, end), /^\s*/.exec(lines[at]!)![0].length);
      trailing((lines[end] ?? "").replace(/[`~]/g, ""), parent, say);
    },
  };
}

/** What stands right behind a closing fence: an answer cites there. */
function trailing(text: string, parent: Node, say: Inline): void {
  if (withoutMarks(text).trim()) say.into(parent.appendChild(h("p")), text.trim());
  else say.note(text);
}

function code(parent: Node, say: Inline, lines: string[], dedent: number): void {
  const text = lines.map((line) => line.replace(new RegExp(`^\\s{0,${dedent}}`), "")).join("\n");
  const inner = h("code");
  say.verbatim(inner, text);
  add(parent, h("pre", { tabindex: "0", dir: "ltr" }, inner));
}

function indented(lines: string[], at: number): Block {
  let end = at;
  while (end < lines.length && /^(?: {4}|\t|\s*$)/.test(withoutMarks(lines[end]!))) end += 1;
  while (!withoutMarks(lines[end - 1]!).trim()) end -= 1;
  return { next: end, show: (parent, say) => code(parent, say, lines.slice(at, end), 4) };
}

/** `$$ … $$` or `\[ … \]`, on lines of their own. What stands in the middle of a sentence is read with it. */
function displayed(lines: string[], at: number, plain: string): Block | null {
  const dollars = plain.trim().startsWith("$$");
  const closes = dollars ? /\$[\uE000-\uE1FF]*\$/g : /\\[\uE000-\uE1FF]*\]/g;
  const [opening] = (dollars ? /^.*?\$[\uE000-\uE1FF]*\$/ : /^.*?\\[\uE000-\uE1FF]*\[/).exec(lines[at]!)!;
  const search = (line: number, from: number): RegExpExecArray | null => {
    closes.lastIndex = from;
    return closes.exec(lines[line]!);
  };
  let end = at;
  let close = search(at, opening.length);
  const goesOn = (line: string | undefined): boolean => {
    const next = withoutMarks(line ?? "").trim();
    return !!next && end - at < MOST_LINES && (dollars || !next.startsWith("\\["));
  };
  while (!close && goesOn(lines[end + 1])) close = search(++end, 0);
  const ended = close ? closes.lastIndex : lines[end]!.length;
  const rest = lines[end]!.slice(ended).replace(/^[.,;]/, "");
  // One that is not closed yet may be on its way, in an answer that grows.
  if (close ? end === at && !/^(?:\s|\[\d+\])*$/.test(withoutMarks(rest)) : !dollars || end + 1 < lines.length) return null;
  const inner = lines.slice(at, end + 1);
  if (close) inner.push(inner.pop()!.slice(0, close.index));
  inner[0] = inner[0]!.slice(opening.length);
  const tex = inner.filter((line) => line.trim()).join("\n");
  if ((!dollars && !isTex(tex, true)) || !withoutMarks(tex).trim()) return null;
  return {
    next: end + 1,
    show: (parent, say) => {
      say.note(opening);
      const shown = formula(withoutMarks(tex), true);
      say.verbatim(shown, tex);
      if (close) say.set(shown);
      add(parent, shown);
      trailing(rest, parent, say);
    },
  };
}

function heading(lines: string[], at: number): Block {
  return {
    next: at + 1,
    show: (parent, say) => {
      const line = behindFront(lines[at]!)
        .trim()
        .replace(/^#+\s+/, "")
        .replace(/#+$/, (marks, place, all) => (/\s/.test(all[place - 1] ?? " ") ? "" : marks));
      const words = line.trim().replace(/\{#[\w-]+\}$/, ""); // an anchor, as many books write it
      say.into(parent.appendChild(h("p", { class: "title", dir: "auto" })), words);
    },
  };
}

function quoted(lines: string[], at: number): Block {
  let end = at + 1;
  while (end < lines.length && /^ {0,3}>|^\s*(?!\d{1,9}[.)]\s)[^\s>#|:`~*+-]/.test(withoutMarks(lines[end]!))) end += 1;
  const inner = lines.slice(at, end).map((line) => behindFront(line).replace(/^ {0,3}> ?/, ""));
  return { next: end, show: (parent, say, depth) => blocks(inner, parent.appendChild(h("blockquote")), say, depth + 1) };
}

/** `:::note Title`, as many books write their asides. */
function aside(lines: string[], at: number): Block {
  let end = at + 1;
  while (end < lines.length && !/^\s*:::+\s*$/.test(withoutMarks(lines[end]!))) end += 1;
  const [, kind = "", title = ""] = ASIDE.exec(withoutMarks(lines[at]!))!;
  return {
    next: end + 1,
    show: (parent, say, depth) => {
      say.note(lines[at]!);
      const inner = parent.appendChild(h("blockquote", {}, h("p", { class: "title" }, title.replace(/^\[|\]$/g, "") || kind)));
      blocks(lines.slice(at + 1, end), inner, say, depth + 1);
      say.note(lines[end] ?? "");
    },
  };
}

function list(lines: string[], at: number, ordered: boolean): Block {
  const items: string[][] = [];
  let first = "1";
  let end = at;
  let indent = 0;
  while (end < lines.length) {
    const line = behindFront(lines[end]!);
    const plain = withoutMarks(line);
    const begins = ITEM.exec(plain);
    const inset = /^\s*/.exec(plain)![0].length;
    if (begins && inset <= (items.length ? indent - 1 : inset) && (begins[2] !== undefined) === ordered && !RULE.test(plain)) {
      if (!items.length) first = begins[2] ?? "1";
      indent = begins[1]!.length + Math.min(Math.max(begins[3]!.length, 1), 4);
      items.push([line.slice(Math.min(indent, begins[0].length))]);
    } else if (!plain.trim()) {
      // A blank line stays in the list if what follows does.
      const after = withoutMarks(lines[end + 1] ?? "");
      const goesOn = /^\s*/.exec(after)![0].length >= indent || ((ITEM.exec(after)?.[2] !== undefined) === ordered && ITEM.test(after));
      if (!after.trim() || !goesOn) break;
      items.at(-1)!.push(line);
    } else if (inset >= indent) {
      items.at(-1)!.push(line.slice(indent));
    } else if (lines[end - 1]?.trim() && !begins && !block(lines, end, plain, true)) {
      items.at(-1)!.push(line.trimStart());
    } else break;
    end += 1;
  }
  return {
    next: Math.max(end, at + 1),
    show: (parent, say, depth) => {
      const shown = ordered ? h("ol", { dir: "auto", start: first === "1" ? null : first }) : h("ul", { dir: "auto" });
      for (const item of items) tight(item, shown.appendChild(h("li", { dir: "auto" })), say, depth);
      add(parent, shown);
    },
  };
}

/** An item of one paragraph is shown without a paragraph. */
function tight(item: string[], parent: HTMLElement, say: Inline, depth: number): void {
  blocks(item, parent, say, depth + 1);
  const first = parent.firstElementChild;
  if (first?.tagName === "P" && !first.className) first.replaceWith(...first.childNodes);
}

function isTable(lines: string[], at: number, plain: string): boolean {
  // Also rows that were quoted without their head; what follows the last bar can only be marks.
  if (/^\s*\|.*\|\s*(?:\[\d+\]\s*)*$/.test(plain)) return true;
  const next = withoutMarks(lines[at + 1] ?? "");
  return plain.includes("|") && next.includes("|") && divides(next);
}

function table(lines: string[], at: number): Block {
  const divided = divides(withoutMarks(lines[at + 1] ?? ""));
  let end = at + 1;
  while (end < lines.length && withoutMarks(lines[end]!).includes("|")) end += 1;
  return {
    next: end,
    show: (parent, say) => {
      const shown = h("table", { dir: "auto" });
      lines.slice(at, end).forEach((line, number) => {
        if (divides(withoutMarks(line))) return say.note(line);
        const row = shown.appendChild(h("tr"));
        for (const cell of cells(line)) say.into(row.appendChild(h(divided && !number ? "th" : "td", { dir: "auto" })), cell);
      });
      add(parent, h("div", { class: "table", tabindex: "0" }, shown));
    },
  };
}

/** The cells of a row; marks behind the last bar belong to the last cell. */
function cells(line: string): string[] {
  const parts = line
    .trim()
    .split(/(?<!\\)\|/, MOST_CELLS)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
  if (!withoutMarks(parts[0]!)) parts.splice(0, 2, (parts[0] ?? "") + (parts[1] ?? ""));
  const last = parts.at(-1)!;
  if (parts.length > 1 && /^(?:\[\d+\]|\s)*$/.test(withoutMarks(last))) {
    parts.pop();
    parts[parts.length - 1] = parts.at(-1)! + (withoutMarks(last) ? " " : "") + last;
  }
  return parts;
}
