/** TeX to MathML, which browsers set by themselves. A script of its own, since most answers have no formula. */

import temml from "temml";
import theirs from "temml/dist/Temml-Local.css?raw";
import { isMath } from "./safe";

const LONGEST = 2000;
const MOST_ELEMENTS = 5000;
/** A few bytes of definitions may grow without end; the arrow of a `\cancelto` is an image. */
const REFUSED = /\\(?:[egx]?def|let|futurelet|(?:re)?newcommand|providecommand|cancelto)\b/;
const NUMBERED = /\\(begin|end)\{(align|alignat|equation|gather|multline)\*?\}/; // an answer numbers nothing

/** How browsers draw what MathML alone does not. Nothing is loaded for it, no font and no image. */
export const style = theirs.replace(/\/\*[\s\S]*?\*\/|@font-face\s*\{[^}]*\}|[\w-]*mask-image:[^;]*;/g, "");

/** Null where it cannot be read, or would show something else than a formula. */
export function typeset(tex: string, display: boolean): Element | null {
  if (tex.length > LONGEST || REFUSED.test(tex)) return null;
  const options = { displayMode: display || NUMBERED.test(tex), throwOnError: true, trust: false, maxSize: [20, 200], maxExpand: 200 };
  try {
    // Its `render` refuses pages without a doctype; this does not.
    const made = temml.__renderToMathMLTree(tex.replaceAll(new RegExp(NUMBERED, "g"), "\\$1{$2*}"), options as never).toNode() as Element;
    return made.localName === "math" && made.getElementsByTagName("*").length <= MOST_ELEMENTS && isMath(made) ? made : null;
  } catch {
    return null;
  }
}
