/**
 * The only module that creates elements. Text from a document, an LLM or a reader becomes a text node, never HTML;
 * nothing is loaded but the server's logo, and a link leads to an http(s) address or nowhere.
 */

import { safeUrl } from "./sanitize";

export type Child = Node | string | null | undefined | false;

interface Attributes {
  class?: string | false;
  /** Left out unless `safeUrl` accepts it. */
  href?: string | null;
  on?: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
  [name: string]: unknown;
}

const FORBIDDEN = /^(on.*|style|src|srcset|srcdoc|action|formaction|xlink:href|innerhtml)$/i;

/** Create an element: `h("p", { class: "quiet" }, "text")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  const { on = {}, href, ...rest } = attributes;
  for (const [key, value] of Object.entries(rest)) {
    if (FORBIDDEN.test(key)) throw new Error(`attribute ${key} is not allowed`);
    if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : String(value));
  }
  const url = safeUrl(href);
  if (url) {
    element.setAttribute("href", url);
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noopener noreferrer");
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener as EventListener);
  append(element, ...children);
  return element;
}

/** Append children; strings become text, null and false are skipped. */
export function append(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child) parent.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
  }
}

/** A button that shows only an icon; the label is for screen readers and as a tooltip. */
export function iconButton(className: string, path: string, label: string, onClick: () => void): HTMLButtonElement {
  return h("button", { type: "button", class: className, "aria-label": label, title: label, on: { click: onClick } }, icon(path));
}

/** A line drawing; see `icons.ts`. */
export function icon(path: string): SVGSVGElement {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.appendChild(document.createElementNS(namespace, "path")).setAttribute("d", path);
  return svg;
}

/** The logo that the operator of a server has chosen: the only image that is ever loaded. It says nothing, and goes if it fails. */
export function logoImage(server: string): HTMLImageElement {
  const image = h("img", { class: "logo", alt: "", referrerpolicy: "no-referrer" });
  image.addEventListener("error", () => image.remove());
  image.src = new URL(`${server}/logo`, location.href).href;
  return image;
}

/** The element that has the focus in the document or shadow tree of this one. */
export function focusedElement(element: Element): HTMLElement | null {
  return (element.getRootNode() as Document | ShadowRoot).activeElement as HTMLElement | null;
}
