/** Formulas: their TeX, until the script that sets them is there. It is fetched when the first formula is shown. */

import { h } from "./safe";

interface Typesetter {
  typeset(tex: string, display: boolean): Element | null;
  style: string;
}

const MOST_KEPT = 500;
const SHORT = 12; // characters of TeX that no line is too narrow for
const AGAIN_MS = 10_000;
const kept = new Map<string, Element | null>();
let server = "";
let typesetter: Typesetter | null = null;
let sheet: CSSStyleSheet | null = null;
let coming: Promise<void> | null = null;
let tries = 0;

/** Where the script is. */
export function mathFrom(address: string): void {
  server = address;
}

/** An element that shows a formula: as TeX by its maker, and set as soon as that can be. */
export function formula(tex: string, display: boolean): HTMLElement {
  return display
    ? h("div", { class: "formula", tabindex: "0", dir: "ltr", "data-tex": tex })
    : h("span", { class: "formula", dir: "ltr", "data-tex": tex });
}

/** Set the formula that this element shows as TeX; one that cannot be set stays as it is. */
export function setFormula(shown: HTMLElement): void {
  if (typesetter) return put(shown);
  coming ??= load();
  void coming.then(() => typesetter && put(shown));
}

async function load(): Promise<void> {
  // Browsers remember that a module could not be loaded, by its address.
  const address = new URL(`${server}/widget/math.js${tries ? `?again=${tries}` : ""}`, location.href).href;
  tries += 1;
  try {
    const loaded = (await import(/* @vite-ignore */ address)) as Typesetter;
    sheet = new CSSStyleSheet();
    sheet.replaceSync(loaded.style);
    typesetter = loaded;
  } catch {
    setTimeout(() => (coming = null), AGAIN_MS);
  }
}

function put(shown: HTMLElement): void {
  const tex = shown.dataset.tex ?? "";
  const display = shown.tagName === "DIV";
  const name = `${display ? "$$" : "$"}${tex}`;
  if (kept.size > MOST_KEPT) kept.clear();
  if (!kept.has(name)) kept.set(name, typesetter!.typeset(tex, display)); // an answer that grows is drawn many times
  const made = kept.get(name)?.cloneNode(true);
  if (!made) return;
  const [highlight] = shown.getElementsByTagName("mark");
  const behind = [...shown.children].filter((child) => child.tagName !== "MARK");
  highlight?.replaceChildren(made);
  shown.replaceChildren(highlight ?? made, ...behind);
  shown.classList.add("set");
  requestAnimationFrame(() => placed(shown, tex, display));
}

/** Once it stands in the page: give that the style of formulas, and let what is too wide for its line be scrolled. */
function placed(shown: HTMLElement, tex: string, display: boolean): void {
  const root = shown.getRootNode() as Document | ShadowRoot;
  if (!shown.isConnected || !sheet) return;
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  if (display || tex.length <= SHORT || shown.scrollWidth <= shown.clientWidth) return;
  shown.classList.add("long");
  shown.tabIndex = 0;
}
