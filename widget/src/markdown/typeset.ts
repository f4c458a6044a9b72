/** TeX to MathML, which browsers draw themselves. A script of its own, because most answers have no formula. */

import temml from "temml";
import temmlStyle from "temml/dist/Temml-Local.css?raw";
import { isSafeMathML } from "../dom/sanitize";

const MAX_LENGTH = 2000;
const MAX_ELEMENTS = 5000;
/** Definitions could expand without end; `\cancelto` draws its arrow as an image. */
const REFUSED = /\\(?:[egx]?def|let|futurelet|(?:re)?newcommand|providecommand|cancelto)\b/;
const NUMBERED = /\\(begin|end)\{(align|alignat|equation|gather|multline)\*?\}/; // answers do not number equations

/** The styles that MathML needs, without fonts or images: nothing is loaded. */
export const style = temmlStyle.replace(/\/\*[\s\S]*?\*\/|@font-face\s*\{[^}]*\}|[\w-]*mask-image:[^;]*;/g, "");

/** The formula as MathML; null if it is not valid TeX or would show anything but symbols. */
export function typeset(tex: string, display: boolean): Element | null {
  if (tex.length > MAX_LENGTH || REFUSED.test(tex)) return null;
  const options = { displayMode: display || NUMBERED.test(tex), throwOnError: true, trust: false, maxSize: [20, 200], maxExpand: 200 };
  const unnumbered = tex.replaceAll(new RegExp(NUMBERED, "g"), "\\$1{$2*}");
  try {
    // Unlike this function, temml's `render` refuses pages without a doctype.
    const math = temml.__renderToMathMLTree(unnumbered, options as never).toNode() as Element;
    return math.localName === "math" && math.getElementsByTagName("*").length <= MAX_ELEMENTS && isSafeMathML(math) ? math : null;
  } catch {
    return null;
  }
}
