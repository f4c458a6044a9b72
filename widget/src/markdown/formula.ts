/** Shows formulas: first as TeX, then as MathML. The script for that is fetched when the first formula is shown. */

import { h } from "../dom/elements";

interface Typesetter {
  typeset(tex: string, display: boolean): Element | null;
  style: string;
}

const MAX_CACHED = 500;
const SHORT_LENGTH = 12; // characters of TeX that fit on any line
const RETRY_MS = 10_000;
const cache = new Map<string, Element | null>();
let server = "";
let typesetter: Typesetter | null = null;
let styleSheet: CSSStyleSheet | null = null;
let loading: Promise<void> | null = null;
let attempts = 0;

/** Set the server to fetch the script from. */
export function loadTypesetterFrom(url: string): void {
  server = url;
}

/** An empty element for a formula. The caller fills in the TeX; `typesetFormula` replaces it. */
export function createFormula(tex: string, mode: "inline" | "display"): HTMLElement {
  return mode === "display"
    ? h("div", { class: "formula", tabindex: "0", dir: "ltr", "data-tex": tex })
    : h("span", { class: "formula", dir: "ltr", "data-tex": tex });
}

/** Show a formula as MathML as soon as the script is there. One that cannot be typeset stays TeX. */
export function typesetFormula(element: HTMLElement): void {
  if (typesetter) return replaceTex(element);
  loading ??= loadTypesetter();
  void loading.then(() => typesetter && replaceTex(element));
}

async function loadTypesetter(): Promise<void> {
  // Browsers cache a failed import by its URL, so each attempt needs a new one.
  const url = new URL(`${server}/widget/math.js${attempts ? `?again=${attempts}` : ""}`, location.href).href;
  attempts += 1;
  try {
    const loaded = (await import(/* @vite-ignore */ url)) as Typesetter;
    styleSheet = new CSSStyleSheet();
    styleSheet.replaceSync(loaded.style);
    typesetter = loaded;
  } catch {
    setTimeout(() => (loading = null), RETRY_MS);
  }
}

function replaceTex(element: HTMLElement): void {
  const tex = element.dataset.tex ?? "";
  const isDisplay = element.tagName === "DIV";
  const math = typesetCached(tex, isDisplay)?.cloneNode(true);
  if (!math) return;
  const [highlight] = element.getElementsByTagName("mark");
  const after = [...element.children].filter((child) => child.tagName !== "MARK");
  highlight?.replaceChildren(math);
  element.replaceChildren(highlight ?? math, ...after);
  element.classList.add("set");
  requestAnimationFrame(() => fitToLine(element, tex, isDisplay));
}

/** A streaming answer is drawn many times, with the same formulas. */
function typesetCached(tex: string, isDisplay: boolean): Element | null {
  const key = `${isDisplay ? "$$" : "$"}${tex}`;
  if (cache.size > MAX_CACHED) cache.clear();
  if (!cache.has(key)) cache.set(key, typesetter!.typeset(tex, isDisplay));
  return cache.get(key) ?? null;
}

/** Once the formula is in the page: add the styles of formulas, and let one that is too wide for its line scroll. */
function fitToLine(element: HTMLElement, tex: string, isDisplay: boolean): void {
  const root = element.getRootNode() as Document | ShadowRoot;
  if (!element.isConnected || !styleSheet) return;
  if (!root.adoptedStyleSheets.includes(styleSheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, styleSheet];
  if (isDisplay || tex.length <= SHORT_LENGTH || element.scrollWidth <= element.clientWidth) return;
  element.classList.add("long");
  element.tabIndex = 0;
}
