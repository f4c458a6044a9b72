/** What may be shown: only http(s) links, and only MathML that draws symbols. */

/** An absolute http(s) URL as a browser reads it; null for every other scheme, and for a URL that names a user. */
export function safeUrl(address: string | null | undefined): string | null {
  if (!address || !/^\s*https?:\/\//i.test(address)) return null;
  try {
    const url = new URL(address);
    return /^https?:$/.test(url.protocol) && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

const MATHML = "http://www.w3.org/1998/Math/MathML";
const MATHML_ELEMENTS = new Set(
  (
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts " +
    "none mtable mtr mtd mstyle mpadded mphantom menclose semantics"
  ).split(" "),
);
const MATHML_ATTRIBUTE =
  /^(accent|accentunder|class|columnalign|columnlines|columnspacing|depth|dir|display|displaystyle|fence|form|height|largeop|linethickness|lspace|mathbackground|mathcolor|mathsize|mathvariant|maxsize|minsize|movablelimits|notation|rowlines|rowspacing|rspace|scriptlevel|separator|stretchy|style|symmetric|voffset|width|xmlns)$/;

/** Whether an element and everything in it is MathML that draws symbols, links nowhere and loads nothing. */
export function isSafeMathML(root: Element): boolean {
  return [root, ...root.querySelectorAll("*")].every(
    (element) =>
      element.namespaceURI === MATHML &&
      MATHML_ELEMENTS.has(element.localName) &&
      [...element.attributes].every(({ name, value }) => MATHML_ATTRIBUTE.test(name) && !/url|expression|import|position/i.test(value)),
  );
}
