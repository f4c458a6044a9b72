import { expect, test } from "vitest";
import english from "../src/languages/en.json";
import { chosen, direction, LANGUAGES } from "../src/words";

const FILES = import.meta.glob<Record<string, string>>("../src/languages/*.json", { eager: true, import: "default" });

test("every language that is named is there, and no other", () => {
  expect(Object.keys(FILES).sort()).toEqual(["en", ...LANGUAGES].sort().map((name) => `../src/languages/${name}.json`));
});

test.each(LANGUAGES)("%s says all that English says, with the same blanks", (language) => {
  const words = FILES[`../src/languages/${language}.json`]!;
  expect(Object.keys(words)).toEqual(Object.keys(english));
  const blanks = (text: string): string[] => (text.match(/\{\w\}/g) ?? []).sort();
  for (const [name, text] of Object.entries(english)) expect(blanks(words[name]!), name).toEqual(blanks(text));
});

test("the first wish that can be met is met", () => {
  expect(chosen(["", "de-AT", "fr"])).toBe("de");
  expect(chosen(["xx", "EN-gb"])).toBe("en");
  expect(chosen([])).toBe("en");
  expect(direction("ar")).toBe("rtl");
});
