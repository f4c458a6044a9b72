import { expect, test } from "vitest";
import { h } from "../../src/dom/elements";
import { safeUrl } from "../../src/dom/sanitize";

test.each([
  ["https://a.org/x?y#z", "https://a.org/x?y#z"],
  ["HTTP://A.org", "http://a.org/"],
  [" https://a.org/ ", "https://a.org/"],
  ["https://a.org/#:~:text=a%2Db,c", "https://a.org/#:~:text=a%2Db,c"],
])("%s is let through", (address, url) => expect(safeUrl(address)).toBe(url));

test.each([
  "javascript:x()",
  "JAVASCRIPT:x()",
  "java\nscript:x()",
  "\u0001javascript:x()",
  "data:text/html,x",
  "vbscript:x",
  "blob:https://a.org/x",
  "file:///x",
  "//a.org",
  "/x",
  "x",
  "",
  "https:x",
  "https://",
  "https://user:secret@a.org",
  "http://[",
  "ftp://a.org",
  "mailto:a@a.org",
  "about:blank",
])("%s is not", (address) => expect(safeUrl(address)).toBeNull());

test("a link opens a new tab and sends no referrer", () => {
  const link = h("a", { href: "https://a.org/" });
  expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
  expect(h("a", { href: "javascript:x()" }).hasAttribute("href")).toBe(false);
});

test.each(["onclick", "ONERROR", "style", "src", "srcdoc", "formaction"])("no element gets %s", (name) => {
  expect(() => h("div", { [name]: "x" })).toThrow(name);
});

test("only one module creates elements, and none parses HTML", () => {
  const sources = import.meta.glob<string>(["../../src/**/*.ts", "!../../src/**/*.d.ts"], { eager: true, import: "default", query: "?raw" });
  expect(Object.keys(sources)).toContain("../../src/dom/elements.ts");
  for (const [name, text] of Object.entries(sources)) {
    const code = text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
    expect(code, name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|\beval\(|new Function/,
    );
    if (name !== "../../src/dom/elements.ts") expect(code, name).not.toMatch(/createElement|setAttribute\("(href|src|on)/);
  }
});
