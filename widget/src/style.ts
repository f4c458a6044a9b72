/** Put a style sheet on a document or a shadow tree; no policy of the page around it forbids that. */
export function dress(root: Document | ShadowRoot, ...sheets: string[]): void {
  for (const text of sheets) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  }
}
