import { expect, test } from "vitest";
import type { Source } from "../../src/api/answer";
import { answerAsMarkdown } from "../../src/chat/answer";
import { createMessage } from "../../src/chat/message";
import type { ChatMessage } from "../../src/conversation/types";
import { context } from "./context";

const SOURCE: Source = {
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
const answer = (more: Partial<ChatMessage>): HTMLElement =>
  createMessage({ id: "a", role: "assistant", content: "", timestamp: new Date(0), standing: "answered", ...more }, context);

test("an unsupported sentence is underlined, with its citation and up to its full stop", () => {
  const content = "A foot lands [1]. It was made by\na baker [1], in Lyon [1]. And so on.";
  const shown = answer({
    content,
    citations: [SOURCE],
    flagged: [{ sentence: "It was made by a baker, in Lyon.", verdict: "unsupported" }],
  });
  const marked = [...shown.querySelectorAll("mark.unsupported")].map((mark) => mark.textContent).join("");
  expect(marked.replace(/\s+/g, " ")).toBe("It was made by a baker , in Lyon .");
  expect(shown.querySelector(".doubt")?.getAttribute("aria-label")).toBe(context.t("unsupported"));
});

test("a sentence that occurs twice is flagged where it is flagged", () => {
  const flagged = [
    { sentence: "Yes.", verdict: "weak" as const },
    { sentence: "Yes.", verdict: "uncited" as const },
  ];
  const shown = answer({ content: "Yes. No. Yes.", flagged, citations: [] });
  expect([...shown.querySelectorAll("mark")].map((mark) => mark.className)).toEqual(["weak", "uncited"]);
});

test("a number that names no source is text", () => {
  expect(answer({ content: "See [7].", citations: [SOURCE] }).querySelectorAll("button.mark")).toHaveLength(0);
});

test("an answer is copied with its sources", () => {
  const message: ChatMessage = { id: "a", role: "assistant", content: "A foot lands [1].", timestamp: new Date(0), citations: [SOURCE] };
  expect(answerAsMarkdown(message)).toBe("A foot lands [1].\n\n[1] Feet › Landing (feet.md)");
});

test("what the sources do not support is folded below the answer, with a label, and is not copied", () => {
  const message = { content: "A foot lands [1].", citations: [SOURCE], unsupported: ["The moon is made of **cheese**.", "- So it is."] };
  const details = answer(message).querySelector("details");
  expect(details?.open).toBe(false);
  expect(details?.querySelector("summary")?.textContent).toBe(context.t("beside"));
  expect(details?.querySelector("strong")?.textContent).toBe("cheese");
  expect(answer({ content: "A foot lands [1]." }).querySelector("details")).toBeNull();
  expect(answerAsMarkdown({ id: "a", role: "assistant", timestamp: new Date(0), ...message })).not.toContain("moon");
});
