/**
 * Markdown to elements, for everything that is shown: answers, also while they stream, excerpts and sources. It supports
 * the Markdown that books use; all else, HTML included, is shown as the text it is.
 */

import { renderBlocks } from "./blocks";
import { InlineRenderer, type MarkdownOptions } from "./inline";
import { insertRangeMarks } from "./range-marks";

export type { MarkdownOptions } from "./inline";
export type { Range } from "./range-marks";

export function renderMarkdown(text: string, options: MarkdownOptions = {}): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const lines = insertRangeMarks(text, options.ranges ?? []).split(/\r\n|\n|\r/);
  renderBlocks(lines, fragment, new InlineRenderer(options), 0);
  return fragment;
}
