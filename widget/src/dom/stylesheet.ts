/** Add style sheets to a document or shadow tree. A content security policy does not block sheets added this way. */
export function adoptStyles(root: Document | ShadowRoot, ...styles: string[]): void {
  for (const text of styles) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  }
}
