import { beforeEach, expect, test } from "vitest";
import { Composer } from "../../src/chat/composer";
import english from "../../src/i18n/languages/en.json";
import { translator } from "../../src/i18n/translations";

let composer: Composer;
let isAccepted: boolean;
const field = (): HTMLTextAreaElement => composer.element.querySelector("textarea")!;
const problem = (): HTMLElement => composer.element.querySelector<HTMLElement>(".problem")!;

function send(text: string): void {
  field().value = text;
  field().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
}

beforeEach(() => {
  composer = new Composer(translator(english), { onAsk: () => isAccepted, onStop: () => undefined });
  document.body.replaceChildren(composer.element);
});

test("a question that is asked leaves the field", () => {
  isAccepted = true;
  send("Why?");
  expect(field().value).toBe("");
});

test("a question that is not asked stays in the field", () => {
  isAccepted = false;
  send("  ");
  expect(field().value).toBe("  ");
});

test("the reason is said at the field until the reader types", () => {
  composer.showProblem("<b>No.</b>");
  expect(problem().textContent).toBe("<b>No.</b>");
  expect(problem().querySelector("b")).toBeNull();
  expect(problem().querySelectorAll("[role=alert]")).toHaveLength(1);
  expect(field().getAttribute("aria-invalid")).toBe("true");
  expect(field().getAttribute("aria-describedby")).toBe(problem().id);
  field().dispatchEvent(new Event("input"));
  expect(problem().textContent).toBe("");
  expect(field().getAttribute("aria-invalid")).toBe("false");
});
