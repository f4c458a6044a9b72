/** Formulas: their TeX, until the script that sets them is there. It is fetched when the first formula is shown. */

type Typeset = (tex: string, display: boolean) => Element | null;

const MOST_KEPT = 500;
const LONG = 60; // characters of TeX: such a formula may be wider than its line
const kept = new Map<string, Element | null>();
let server = "";
let typeset: Typeset | null = null;
let coming: Promise<void> | null = null;

/** Where the script is. */
export function mathFrom(address: string): void {
  server = address;
}

/** Set the formula that this element shows as TeX; one that cannot be set stays as it is. */
export function setFormula(shown: HTMLElement, tex: string, display: boolean): void {
  if (typeset) return put(shown, tex, display);
  coming ??= (import(/* @vite-ignore */ `${server}/widget/math.js`) as Promise<{ typeset: Typeset }>).then(
    (loaded) => void (typeset = loaded.typeset),
    () => undefined,
  );
  void coming.then(() => typeset && put(shown, tex, display));
}

function put(shown: HTMLElement, tex: string, display: boolean): void {
  const name = `${display ? "$$" : "$"}${tex}`;
  if (kept.size > MOST_KEPT) kept.clear();
  if (!kept.has(name)) kept.set(name, typeset!(tex, display)); // an answer that grows is drawn many times
  const made = kept.get(name)?.cloneNode(true);
  if (!made) return;
  const [highlight] = shown.getElementsByTagName("mark");
  const behind = [...shown.children].filter((child) => child.tagName !== "MARK");
  highlight?.replaceChildren(made);
  shown.replaceChildren(highlight ?? made, ...behind);
  shown.classList.add("set", ...(tex.length > LONG ? ["long"] : []));
}
