/** What the server refuses, so that a page can say so before it sends anything. Knows nothing about the DOM. */

import type { TextKey } from "../i18n/translations";

/** In characters as the server counts them: an emoji is one, although it has two units of UTF-16. */
export const MAX_QUESTION = 32_000;
export const MAX_SELECTION = 64_000;

/** A reason to show to the reader: a text of the interface and what to fill in. */
export interface Problem {
  key: TextKey;
  values?: { n: number; m: number };
}

const INVISIBLE = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Whether there is nothing to see in a text: white space, joiners, direction marks and the like are all it has. */
export function isBlank(text: string): boolean {
  return !text.replace(INVISIBLE, "");
}

/** Text as it can be sent: trimmed, and half a character that a cut has left is a replacement character. */
export function cleanText(text: string): string {
  return text.replace(/\p{Cs}/gu, "\ufffd").trim();
}

export function questionProblem(question: string): Problem | null {
  return isBlank(question) ? { key: "noQuestion" } : lengthProblem("longQuestion", question, MAX_QUESTION);
}

export function selectionProblem(text: string): Problem | null {
  return isBlank(text) ? { key: "noSelection" } : lengthProblem("longSelection", text, MAX_SELECTION);
}

function lengthProblem(key: TextKey, text: string, most: number): Problem | null {
  if (text.length <= most) return null;
  const { length } = [...text];
  return length > most ? { key, values: { n: length, m: most } } : null;
}
