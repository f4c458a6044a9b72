/** Parses and renders the blocks of Markdown: paragraphs, lists, tables, code, quotes and displayed formulas. */

import { append, h } from "../dom/elements";
import { createFormula } from "./formula";
import type { InlineRenderer } from "./inline";
import { MARK_CLASS, withoutMarks } from "./range-marks";
import { isTex } from "./tokenizer";

interface Block {
  /** The line after the block. */
  next: number;
  render(parent: Node, inline: InlineRenderer, depth: number): void;
  /** The paragraph before it is a heading. */
  underlines?: true;
}

const MAX_DEPTH = 12;
const MAX_CELLS = 50;
const MAX_FORMULA_LINES = 60;
const FENCE = /^\s*(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}#{1,6}\s/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const LIST_ITEM = /^(\s*(?:[-*+]|(\d{1,9})[.)]))(\s+|$)/;
const ADMONITION = /^\s*:::+\s*(\w[\w-]*)?\s*(.*)$/;
const DOLLARS_OPEN = new RegExp(`^.*?\\$[${MARK_CLASS}]*\\$`);
const DOLLARS_CLOSE = new RegExp(`\\$[${MARK_CLASS}]*\\$`, "g");
const BRACKET_OPEN = new RegExp(`^.*?\\\\[${MARK_CLASS}]*\\[`);
const BRACKET_CLOSE = new RegExp(`\\\\[${MARK_CLASS}]*\\]`, "g");
const MARKS_BEFORE_PREFIX = new RegExp(`^([${MARK_CLASS}]+)(\\s*(?:(?:[-*+>]|\\d{1,9}[.)]|#{1,6})\\s+|\\|\\s*)?)`);

export function renderBlocks(lines: string[], parent: Node, inline: InlineRenderer, depth: number): void {
  let paragraph: string[] = [];
  const flush = (): void => {
    if (paragraph.length) inline.render(parent.appendChild(h("p", { dir: "auto" })), paragraph.join("\n"));
    paragraph = [];
  };
  for (let at = 0; at < lines.length;) {
    const line = moveMarksBehindPrefix(lines[at]!);
    const plain = withoutMarks(line);
    if (!plain.trim()) {
      inline.skip(line);
      flush();
      at += 1;
      continue;
    }
    const formulaStart = findFormulaStart(lines, at, line, plain);
    if (formulaStart !== null) {
      paragraph.push(line.slice(0, formulaStart));
      lines[at] = line.slice(formulaStart);
      continue;
    }
    const block = depth < MAX_DEPTH ? parseBlock(lines, at, plain, paragraph.length > 0) : null;
    if (!block) {
      paragraph.push(line);
      at += 1;
      continue;
    }
    if (block.underlines) {
      const title = paragraph.join(" ");
      paragraph = [];
      inline.render(parent.appendChild(h("p", { class: "title", dir: "auto" })), title);
    }
    flush();
    block.render(parent, inline, depth);
    at = block.next;
  }
  flush();
}

/** Where a formula starts that follows text on the same line and continues on the next lines. */
function findFormulaStart(lines: string[], at: number, line: string, plain: string): number | null {
  if (!plain.trimEnd().endsWith("$$") || plain.indexOf("$$") !== plain.lastIndexOf("$$")) return null;
  if (!/^[^>|]*\w/.test(plain)) return null;
  const place = line.lastIndexOf("$$");
  const closed = lines.slice(at + 1, at + MAX_FORMULA_LINES).find((next) => next.includes("$$") || !withoutMarks(next).trim());
  return place > 0 && closed?.includes("$$") ? place : null;
}

/** Move range marks behind a list marker, `>` or `#`, so that the parser still sees it at the start of the line. */
function moveMarksBehindPrefix(line: string): string {
  return line.replace(MARKS_BEFORE_PREFIX, "$2$1");
}

/** Whether a line divides the head of a table from its rows. */
function isTableDivider(line: string): boolean {
  const inner = line.trim().replace(/^\||\|$/g, "");
  return line.includes("-") && inner.split("|", MAX_CELLS).every((cell) => /^:?-+:?$/.test(cell.trim()));
}

function parseBlock(lines: string[], at: number, plain: string, inParagraph: boolean): Block | null {
  const fence = FENCE.exec(plain);
  if (fence) return parseFence(lines, at, fence[1]!);
  const isIndented = /^(?: {4}|\t)/.test(plain);
  const mayBeFormula = (inParagraph || !isIndented) && /^\s*(?:\$\$|\\\[)/.test(plain);
  const formula = mayBeFormula ? parseFormula(lines, at, plain) : null;
  if (formula) return formula;
  if (inParagraph && /^ {0,3}(=+|-+) *$/.test(plain)) return { next: at + 1, underlines: true, render: () => undefined };
  if (RULE.test(plain)) return { next: at + 1, render: (parent) => append(parent, h("hr")) };
  if (HEADING.test(plain)) return parseHeading(lines, at);
  if (/^ {0,3}>/.test(plain)) return parseQuote(lines, at);
  if (/^\s*:::+\s*\w/.test(plain)) return parseAdmonition(lines, at);
  const item = LIST_ITEM.exec(plain);
  if (item && (!inParagraph || (item[3] !== "" && (item[2] ?? "1") === "1"))) return parseList(lines, at, item[2] !== undefined);
  if (isTable(lines, at, plain)) return parseTable(lines, at);
  if (!inParagraph && isIndented) return parseIndentedCode(lines, at);
  return null;
}

function parseFence(lines: string[], at: number, ticks: string): Block {
  let end = at + 1;
  const closes = (line: string): boolean => {
    const fence = /^\s*(`{3,}|~{3,})\s*(?:\[\d+\]\s*)*$/.exec(withoutMarks(line));
    return !!fence && fence[1]!.startsWith(ticks);
  };
  while (end < lines.length && !closes(lines[end]!)) end += 1;
  return {
    next: end + 1,
    render: (parent, inline) => {
      inline.skip(lines[at]!);
      renderCode(parent, inline, lines.slice(at + 1, end), indentOf(lines[at]!));
      renderTrailing((lines[end] ?? "").replace(/[`~]/g, ""), parent, inline);
    },
  };
}

/** The text after a closing fence or formula, on the same line: answers put citations there. */
function renderTrailing(text: string, parent: Node, inline: InlineRenderer): void {
  if (withoutMarks(text).trim()) inline.render(parent.appendChild(h("p")), text.trim());
  else inline.skip(text);
}

function renderCode(parent: Node, inline: InlineRenderer, lines: string[], dedent: number): void {
  const text = lines.map((line) => line.replace(new RegExp(`^\\s{0,${dedent}}`), "")).join("\n");
  const code = h("code");
  inline.renderVerbatim(code, text);
  append(parent, h("pre", { tabindex: "0", dir: "ltr" }, code));
}

function parseIndentedCode(lines: string[], at: number): Block {
  let end = at;
  while (end < lines.length && /^(?: {4}|\t|\s*$)/.test(withoutMarks(lines[end]!))) end += 1;
  while (!withoutMarks(lines[end - 1]!).trim()) end -= 1;
  return { next: end, render: (parent, inline) => renderCode(parent, inline, lines.slice(at, end), 4) };
}

/** `$$ … $$` or `\[ … \]` on lines of its own. A formula within a sentence belongs to its paragraph. */
function parseFormula(lines: string[], at: number, plain: string): Block | null {
  const hasDollars = plain.trim().startsWith("$$");
  const closing = hasDollars ? DOLLARS_CLOSE : BRACKET_CLOSE;
  const [opening] = (hasDollars ? DOLLARS_OPEN : BRACKET_OPEN).exec(lines[at]!)!;
  const search = (line: number, from: number): RegExpExecArray | null => {
    closing.lastIndex = from;
    return closing.exec(lines[line]!);
  };
  let end = at;
  let close = search(at, opening.length);
  const continues = (line: string | undefined): boolean => {
    const next = withoutMarks(line ?? "").trim();
    return !!next && end - at < MAX_FORMULA_LINES && (hasDollars || !next.startsWith("\\["));
  };
  while (!close && continues(lines[end + 1])) close = search(++end, 0);
  const closeEnd = close ? closing.lastIndex : lines[end]!.length;
  const rest = lines[end]!.slice(closeEnd).replace(/^[.,;]/, "");
  const isWithinSentence = end === at && !/^(?:\s|\[\d+\])*$/.test(withoutMarks(rest));
  // In an answer that streams, the end of the last formula may still be missing.
  const isStreaming = hasDollars && end + 1 >= lines.length;
  if (close ? isWithinSentence : !isStreaming) return null;
  const inner = lines.slice(at, end + 1);
  if (close) inner.push(inner.pop()!.slice(0, close.index));
  inner[0] = inner[0]!.slice(opening.length);
  const tex = inner.filter((line) => line.trim()).join("\n");
  if ((!hasDollars && !isTex(tex, true)) || !withoutMarks(tex).trim()) return null;
  return {
    next: end + 1,
    render: (parent, inline) => {
      inline.skip(opening);
      const element = createFormula(withoutMarks(tex), "display");
      inline.renderVerbatim(element, tex);
      if (close) inline.typeset(element);
      append(parent, element);
      renderTrailing(rest, parent, inline);
    },
  };
}

function parseHeading(lines: string[], at: number): Block {
  return {
    next: at + 1,
    render: (parent, inline) => {
      const line = moveMarksBehindPrefix(lines[at]!)
        .trim()
        .replace(/^#+\s+/, "")
        .replace(/#+$/, (marks, place, all) => (/\s/.test(all[place - 1] ?? " ") ? "" : marks));
      const title = line.trim().replace(/\{#[\w-]+\}$/, ""); // without the anchor that many books add
      inline.render(parent.appendChild(h("p", { class: "title", dir: "auto" })), title);
    },
  };
}

function parseQuote(lines: string[], at: number): Block {
  let end = at + 1;
  while (end < lines.length && /^ {0,3}>|^\s*(?!\d{1,9}[.)]\s)[^\s>#|:`~*+-]/.test(withoutMarks(lines[end]!))) end += 1;
  const inner = lines.slice(at, end).map((line) => moveMarksBehindPrefix(line).replace(/^ {0,3}> ?/, ""));
  return { next: end, render: (parent, inline, depth) => renderBlocks(inner, parent.appendChild(h("blockquote")), inline, depth + 1) };
}

/** `:::note Title` … `:::`, as in Docusaurus. */
function parseAdmonition(lines: string[], at: number): Block {
  let end = at + 1;
  while (end < lines.length && !/^\s*:::+\s*$/.test(withoutMarks(lines[end]!))) end += 1;
  const [, kind = "", title = ""] = ADMONITION.exec(withoutMarks(lines[at]!))!;
  return {
    next: end + 1,
    render: (parent, inline, depth) => {
      inline.skip(lines[at]!);
      const quote = h("blockquote", {}, h("p", { class: "title" }, title.replace(/^\[|\]$/g, "") || kind));
      renderBlocks(lines.slice(at + 1, end), parent.appendChild(quote), inline, depth + 1);
      inline.skip(lines[end] ?? "");
    },
  };
}

function parseList(lines: string[], at: number, ordered: boolean): Block {
  const items: string[][] = [];
  let first = "1";
  let end = at;
  let indent = 0;
  while (end < lines.length) {
    const line = moveMarksBehindPrefix(lines[end]!);
    const plain = withoutMarks(line);
    const marker = LIST_ITEM.exec(plain);
    const lineIndent = indentOf(plain);
    if (marker && lineIndent <= (items.length ? indent - 1 : lineIndent) && (marker[2] !== undefined) === ordered && !RULE.test(plain)) {
      if (!items.length) first = marker[2] ?? "1";
      indent = marker[1]!.length + Math.min(Math.max(marker[3]!.length, 1), 4);
      items.push([line.slice(Math.min(indent, marker[0].length))]);
    } else if (!plain.trim()) {
      // A blank line belongs to the list if the next line does.
      const after = withoutMarks(lines[end + 1] ?? "");
      const isItem = LIST_ITEM.test(after) && (LIST_ITEM.exec(after)?.[2] !== undefined) === ordered;
      if (!after.trim() || !(isItem || indentOf(after) >= indent)) break;
      items.at(-1)!.push(line);
    } else if (lineIndent >= indent) {
      items.at(-1)!.push(line.slice(indent));
    } else if (lines[end - 1]?.trim() && !marker && !parseBlock(lines, end, plain, true)) {
      items.at(-1)!.push(line.trimStart());
    } else break;
    end += 1;
  }
  return {
    next: Math.max(end, at + 1),
    render: (parent, inline, depth) => {
      const element = ordered ? h("ol", { dir: "auto", start: first === "1" ? null : first }) : h("ul", { dir: "auto" });
      for (const item of items) renderListItem(item, element.appendChild(h("li", { dir: "auto" })), inline, depth);
      append(parent, element);
    },
  };
}

function indentOf(line: string): number {
  return /^\s*/.exec(line)![0].length;
}

/** The text of an item with a single paragraph stands in the item itself. */
function renderListItem(item: string[], parent: HTMLElement, inline: InlineRenderer, depth: number): void {
  renderBlocks(item, parent, inline, depth + 1);
  const first = parent.firstElementChild;
  if (first?.tagName === "P" && !first.className) first.replaceWith(...first.childNodes);
}

function isTable(lines: string[], at: number, plain: string): boolean {
  // Also rows that were quoted without their head. Only citations may follow the last bar.
  if (/^\s*\|.*\|\s*(?:\[\d+\]\s*)*$/.test(plain)) return true;
  const next = withoutMarks(lines[at + 1] ?? "");
  return plain.includes("|") && next.includes("|") && isTableDivider(next);
}

function parseTable(lines: string[], at: number): Block {
  const hasHead = isTableDivider(withoutMarks(lines[at + 1] ?? ""));
  let end = at + 1;
  while (end < lines.length && withoutMarks(lines[end]!).includes("|")) end += 1;
  return {
    next: end,
    render: (parent, inline) => {
      const element = h("table", { dir: "auto" });
      lines.slice(at, end).forEach((line, index) => {
        if (isTableDivider(withoutMarks(line))) return inline.skip(line);
        const row = element.appendChild(h("tr"));
        for (const cell of splitCells(line)) inline.render(row.appendChild(h(hasHead && !index ? "th" : "td", { dir: "auto" })), cell);
      });
      append(parent, h("div", { class: "table", tabindex: "0" }, element));
    },
  };
}

/** The cells of a row. Citations after the last bar belong to the last cell. */
function splitCells(line: string): string[] {
  const parts = line
    .trim()
    .split(/(?<!\\)\|/, MAX_CELLS)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
  if (!withoutMarks(parts[0]!)) parts.splice(0, 2, (parts[0] ?? "") + (parts[1] ?? ""));
  const last = parts.at(-1)!;
  if (parts.length > 1 && /^(?:\[\d+\]|\s)*$/.test(withoutMarks(last))) {
    parts.pop();
    parts[parts.length - 1] = parts.at(-1)! + (withoutMarks(last) ? " " : "") + last;
  }
  return parts;
}
