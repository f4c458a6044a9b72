/** What the interface says, in the reader's language where we have it. English is built in, the others are fetched. */

import english from "./languages/en.json";

export type Word = keyof typeof english;
export type Words = (word: Word, values?: Record<string, string | number>) => string;

/** Languages that have a file beside `en.json`; a test compares. */
export const LANGUAGES = ["ar", "de", "es", "fr", "ja", "zh"] as const;
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);

/** The first wish that can be met: "de-AT" is met by "de". */
export function chosen(wishes: readonly string[]): string {
  const short = wishes.map((wish) => wish.toLowerCase().split("-")[0]!);
  return short.find((wish) => wish === "en" || (LANGUAGES as readonly string[]).includes(wish)) ?? "en";
}

export function direction(language: string): "rtl" | "ltr" {
  return RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";
}

/** A language that cannot be fetched is no reason to show nothing. */
export async function wordsIn(language: string, server: string): Promise<Words> {
  if (language === "en") return speak(english);
  try {
    const response = await fetch(`${server}/widget/${language}.json`, { credentials: "omit" });
    return speak({ ...english, ...((await response.json()) as Partial<typeof english>) });
  } catch {
    return speak(english);
  }
}

export function speak(table: typeof english): Words {
  return (word, values = {}) => table[word].replace(/\{(\w)\}/g, (_, name: string) => String(values[name] ?? ""));
}
