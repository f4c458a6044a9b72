// What jsdom can check of formulas; tests/browser/test_formulas.py uses a real browser.
import { expect, test } from "vitest";
import { isSafeMathML } from "../../src/dom/sanitize";
import { typeset } from "../../src/markdown/typeset";

test("a formula becomes MathML", () => {
  const made = typeset("K_p + \\frac{v^2}{gL}", false)!;
  expect(made.localName).toBe("math");
  expect(made.querySelectorAll("msub, mfrac, msup")).toHaveLength(3);
});

test.each(["\\nosuchcommand{x}", "\\frac{1}{", "\\def\\a{\\a\\a}\\a", "x}{"])("%s stays what it is", (tex) => {
  expect(typeset(tex, true)).toBeNull();
});

test("a few bytes do not become a page full of elements", () => {
  expect(typeset(`\\newcommand{\\a}{${"x".repeat(100)}}${"\\a".repeat(100)}`, true)).toBeNull();
  expect(typeset("x".repeat(2001), true)).toBeNull();
});

test("what looks like HTML in a formula is symbols", () => {
  const made = typeset("\\text{<img src=x onerror=alert(1)>}", false)!;
  expect(made.querySelector("img")).toBeNull();
  expect(made.textContent).toContain("<img");
});

const SPACE = "http://www.w3.org/1998/Math/MathML";

function math(inner: (parent: Element) => void): Element {
  const made = document.createElementNS(SPACE, "math");
  inner(made.appendChild(document.createElementNS(SPACE, "mi")));
  return made;
}

test("only symbols are a formula", () => {
  expect(isSafeMathML(math((symbol) => symbol.setAttribute("mathvariant", "normal")))).toBe(true);
  expect(isSafeMathML(math((symbol) => symbol.setAttribute("href", "https://example.org")))).toBe(false);
  expect(isSafeMathML(math((symbol) => symbol.setAttribute("onclick", "x()")))).toBe(false);
  expect(isSafeMathML(math((symbol) => symbol.setAttribute("style", "position: fixed")))).toBe(false);
  expect(isSafeMathML(math((symbol) => symbol.setAttribute("style", "background: url(x)")))).toBe(false);
  expect(isSafeMathML(math((symbol) => symbol.appendChild(document.createElement("a"))))).toBe(false);
  expect(isSafeMathML(math((symbol) => symbol.appendChild(document.createElementNS(SPACE, "annotation-xml"))))).toBe(false);
  expect(isSafeMathML(document.createElement("p"))).toBe(false);
});
