/**
 * The only place where elements are made and addresses are let through. What a book, a model or a reader says can
 * become text, and nothing else: no HTML is ever parsed, nothing is loaded, and a link leads to http(s) or nowhere.
 */

export type Child = Node | string | null | undefined | false;

interface Attributes {
  class?: string | false;
  /** A place to go; what `safeUrl` refuses is left out. */
  href?: string | null;
  on?: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
  [name: string]: unknown;
}

const FORBIDDEN = /^(on.*|style|src|srcset|srcdoc|action|formaction|xlink:href|innerhtml)$/i;

export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  const { on = {}, href, ...rest } = attributes;
  for (const [key, value] of Object.entries(rest)) {
    if (FORBIDDEN.test(key)) throw new Error(`${key} is not for content`);
    if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : String(value));
  }
  const url = safeUrl(href);
  if (url) {
    made.setAttribute("href", url);
    made.setAttribute("target", "_blank");
    made.setAttribute("rel", "noopener noreferrer");
  }
  for (const [event, hear] of Object.entries(on)) made.addEventListener(event, hear as EventListener);
  add(made, ...children);
  return made;
}

export function add(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child) parent.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
  }
}

/** An absolute http(s) address as a browser reads it; null for every other kind, and for one that names a user. */
export function safeUrl(address: string | null | undefined): string | null {
  if (!address || !/^\s*https?:\/\//i.test(address)) return null;
  try {
    const url = new URL(address);
    return /^https?:$/.test(url.protocol) && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

const MATH = new Set(
  (
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts " +
    "none mtable mtr mtd mstyle mpadded mphantom menclose semantics"
  ).split(" "),
);
const MATH_ATTRIBUTE =
  /^(accent|accentunder|class|columnalign|columnlines|columnspacing|depth|dir|display|displaystyle|fence|form|height|largeop|linethickness|lspace|mathbackground|mathcolor|mathsize|mathvariant|maxsize|minsize|movablelimits|notation|rowlines|rowspacing|rspace|scriptlevel|separator|stretchy|style|symmetric|voffset|width|xmlns)$/;
const MATH_SPACE = "http://www.w3.org/1998/Math/MathML";

/** Whether an element and all in it is MathML that shows symbols, leads nowhere and loads nothing. */
export function isMath(element: Element): boolean {
  return [element, ...element.querySelectorAll("*")].every(
    (one) =>
      one.namespaceURI === MATH_SPACE &&
      MATH.has(one.localName) &&
      [...one.attributes].every(({ name, value }) => MATH_ATTRIBUTE.test(name) && !/url|expression|import|position/i.test(value)),
  );
}

/** A drawing of one line; the words beside it say what it means. */
export function icon(path: string): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  drawing.appendChild(document.createElementNS(space, "path")).setAttribute("d", path);
  return drawing;
}
