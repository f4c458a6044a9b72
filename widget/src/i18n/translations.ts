/** The texts of the interface in the reader's language. English is built in; other languages are fetched. */

import english from "./languages/en.json";

export type Translations = typeof english;
export type TextKey = keyof Translations;
/** The text for a key, with `{n}` and the like filled in: `t("page", { n: 3 })`. */
export type Translate = (key: TextKey, values?: Record<string, string | number>) => string;

/** The languages that have a file beside `en.json`. */
export const LANGUAGES = ["ar", "de", "es", "fr", "ja", "zh"] as const;
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);

/** The first preferred language that we have; "de-AT" matches "de". */
export function pickLanguage(preferred: readonly string[]): string {
  const short = preferred.map((language) => language.toLowerCase().split("-")[0]!);
  return short.find((language) => language === "en" || (LANGUAGES as readonly string[]).includes(language)) ?? "en";
}

export function textDirection(language: string): "rtl" | "ltr" {
  return RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";
}

/** English is the fallback where a language cannot be fetched. */
export async function loadTranslations(language: string, server: string): Promise<Translate> {
  if (language === "en") return translator(english);
  try {
    const response = await fetch(`${server}/widget/${language}.json`, { credentials: "omit" });
    return translator({ ...english, ...((await response.json()) as Partial<Translations>) });
  } catch {
    return translator(english);
  }
}

export function translator(texts: Translations): Translate {
  return (key, values = {}) => texts[key].replace(/\{(\w)\}/g, (_, name: string) => String(values[name] ?? ""));
}
