/**
 * Ranges of a Markdown text that are shown in their own way, such as a quote in a source. A private character marks each
 * start and each end, and travels through the parser like any other text.
 */

export interface Range {
  start: number;
  end: number;
  /** The CSS class of the highlighted text. */
  kind: string;
}

const FIRST_START = 0xe000;
const FIRST_END = 0xe100;
const MAX_RANGES = 255;

/** The range marks as part of a character class in a pattern. */
export const MARK_CLASS = "\\uE000-\\uE1FF";
const ANY_MARK = new RegExp(`[${MARK_CLASS}]`, "g");
const SPLIT_AT_MARKS = new RegExp(`([${MARK_CLASS}])`);

/** The text with a mark at both ends of each range. */
export function insertRangeMarks(text: string, ranges: Range[]): string {
  const marks = ranges.slice(0, MAX_RANGES).flatMap(({ start, end }, index) =>
    end <= start
      ? []
      : [
          { place: start, mark: String.fromCharCode(FIRST_START + index), order: 1 },
          { place: end, mark: String.fromCharCode(FIRST_END + index), order: 0 },
        ],
  );
  marks.sort((a, b) => a.place - b.place || a.order - b.order);
  let done = 0;
  let result = "";
  for (const { place, mark } of marks) {
    result += withoutMarks(text.slice(done, place), "\uFFFD") + mark;
    done = place;
  }
  return result + withoutMarks(text.slice(done), "\uFFFD");
}

export function withoutMarks(text: string, replacement = ""): string {
  return text.replace(ANY_MARK, replacement);
}

/** The text cut at its marks; each mark is a part of its own. */
export function splitAtMarks(text: string): string[] {
  return text.split(SPLIT_AT_MARKS).filter(Boolean);
}

/** Which range a mark belongs to, and whether it starts or ends it; null for other text. */
export function readMark(part: string): { index: number; isStart: boolean } | null {
  const code = part.charCodeAt(0);
  const isMark = part.length === 1 && code >= FIRST_START && code <= FIRST_END + MAX_RANGES;
  return isMark ? { index: code & 0xff, isStart: code < FIRST_END } : null;
}
