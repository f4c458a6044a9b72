import { expect, test } from "vitest";
import { asMarkdown, show } from "../src/answer";
import type { Source, Told } from "../src/model";
import { asks } from "./asks";

const SOURCE: Source = {
  chapter: "Feet",
  chapterTitle: "Feet",
  sourceFile: "feet.md",
  excerpt: "A foot lands.",
  chunkId: "a",
  section: "Landing",
  score: 0.5,
  url: null,
  line: 3,
  page: null,
  quotes: ["A foot lands."],
  status: null,
};
const answer = (more: Partial<Told>): HTMLElement =>
  show({ id: "a", role: "assistant", content: "", timestamp: new Date(0), standing: "answered", ...more }, asks);

test("a sentence that is not borne out is marked, with its citation and up to its full stop", () => {
  const content = "A foot lands [1]. It was made by\na baker [1], in Lyon [1]. And so on.";
  const shown = answer({
    content,
    citations: [SOURCE],
    doubts: [{ sentence: "It was made by a baker, in Lyon.", verdict: "unsupported" }],
  });
  const marked = [...shown.querySelectorAll("mark.unsupported")].map((one) => one.textContent).join("");
  expect(marked.replace(/\s+/g, " ")).toBe("It was made by a baker , in Lyon .");
  expect(shown.querySelector(".doubt")?.getAttribute("aria-label")).toBe(asks.say("unsupported"));
});

test("the same sentence twice is doubted where it is doubted", () => {
  const doubts = [
    { sentence: "Yes.", verdict: "weak" as const },
    { sentence: "Yes.", verdict: "uncited" as const },
  ];
  const shown = answer({ content: "Yes. No. Yes.", doubts, citations: [] });
  expect([...shown.querySelectorAll("mark")].map((one) => one.className)).toEqual(["weak", "uncited"]);
});

test("a number that names no source is text", () => {
  expect(answer({ content: "See [7].", citations: [SOURCE] }).querySelectorAll("button.mark")).toHaveLength(0);
});

test("an answer is copied with where its marks lead", () => {
  const told: Told = { id: "a", role: "assistant", content: "A foot lands [1].", timestamp: new Date(0), citations: [SOURCE] };
  expect(asMarkdown(told)).toBe("A foot lands [1].\n\n[1] Feet › Landing (feet.md)");
});
