import { expect, test } from "vitest";
import english from "../../src/i18n/languages/en.json";
import { LANGUAGES, pickLanguage, textDirection } from "../../src/i18n/translations";

const FILES = import.meta.glob<Record<string, string>>("../../src/i18n/languages/*.json", { eager: true, import: "default" });

test("every listed language has a file, and every file is listed", () => {
  expect(Object.keys(FILES).sort()).toEqual(["en", ...LANGUAGES].sort().map((name) => `../../src/i18n/languages/${name}.json`));
});

test.each(LANGUAGES)("%s has every text of English, with the same placeholders", (language) => {
  const texts = FILES[`../../src/i18n/languages/${language}.json`]!;
  expect(Object.keys(texts)).toEqual(Object.keys(english));
  const placeholders = (text: string): string[] => (text.match(/\{\w\}/g) ?? []).sort();
  for (const [name, text] of Object.entries(english)) expect(placeholders(texts[name]!), name).toEqual(placeholders(text));
});

test("the first preferred language that exists is picked", () => {
  expect(pickLanguage(["", "de-AT", "fr"])).toBe("de");
  expect(pickLanguage(["xx", "EN-gb"])).toBe("en");
  expect(pickLanguage([])).toBe("en");
  expect(textDirection("ar")).toBe("rtl");
});
