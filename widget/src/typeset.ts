/** TeX to MathML, which browsers set by themselves. A script of its own, since most answers have no formula. */

import temml from "temml";
import { h, isMath } from "./safe";

/** Null where it cannot be read, or would show something else than a formula. */
export function typeset(tex: string, display: boolean): Element | null {
  const holder = h("span");
  try {
    temml.render(tex, holder, { displayMode: display, throwOnError: true, trust: false, maxSize: [20, 200], maxExpand: 200 });
  } catch {
    return null;
  }
  const [made] = holder.children;
  return made && isMath(made) ? made : null;
}
