/** Shows an answer, in the same way while it streams, when it is complete and when it comes from the history. */

import { type FlaggedSentence, type Source, sourceTitle, type Standing } from "../api/answer";
import type { Vote } from "../api/client";
import type { ChatMessage } from "../conversation/types";
import { append, type Child, h, icon, iconButton } from "../dom/elements";
import { COPY, RETRY, THUMB_DOWN, THUMB_UP } from "../dom/icons";
import type { TextKey, Translate } from "../i18n/translations";
import { type Range, renderMarkdown } from "../markdown/markdown";
import type { Tooltip } from "./tooltip";

/** What an answer needs from the chat around it. */
export interface AnswerContext {
  t: Translate;
  /** What the documents are called, if they have a title and it is known already. */
  title(): string | undefined;
  tooltip: Tooltip;
  /** Open a source at its k-th citation (from 0). */
  openSource(source: Source, occurrence: number, opener: HTMLElement): void;
  retry(answer: ChatMessage): void;
  vote(answer: ChatMessage, vote: Vote): void;
  copy(answer: ChatMessage): void;
  /** Ask again without the selection. */
  askAllDocuments(question: string): void;
  /** A form for an API key; null where keys cannot be entered. */
  createKeyForm(): HTMLElement | null;
}

const HEADLINES: Partial<Record<Standing, TextKey>> = {
  unsure: "unsure",
  uncovered: "uncovered",
  "outside-selection": "outside",
  silent: "silent",
};

/** The line above an answer that is not plainly answered. */
export function headlineOf({ standing }: ChatMessage, { t, title }: AnswerContext): string | undefined {
  const name = title();
  if (standing === "uncovered" && name) return t("uncoveredBy", { t: name });
  const key = standing && HEADLINES[standing];
  return key && t(key);
}

export function renderAnswer(answer: ChatMessage, context: AnswerContext): HTMLElement {
  const { t } = context;
  const headline = headlineOf(answer, context);
  return h(
    "div",
    { class: "bubble" },
    h("span", { class: "unseen" }, `${t("answer")}: `),
    headline && h("p", { class: "headline" }, headline),
    renderText(answer, context),
    ...(answer.isStreaming ? [renderProgress(answer, context)] : renderDetails(answer, context)),
  );
}

/** The answer as Markdown, followed by its list of sources. */
export function answerAsMarkdown({ content, citations = [], selectedText }: ChatMessage): string {
  const sources = citations.map((source, index) => `[${index + 1}] ${sourceTitle(source)} (${source.url ?? source.sourceFile})`);
  const text = selectedText ? content.replace(/\s*\[\d+\]/g, "") : content;
  return [text, ...(sources.length ? ["", ...sources] : [])].join("\n");
}

function renderText(answer: ChatMessage, context: AnswerContext): Child {
  const { content, standing, nearest, flagged = [] } = answer;
  // Here the text only repeats the headline or the list of topics.
  const isRedundant = standing === "silent" || (standing === "uncovered" && nearest?.length);
  if (!content || isRedundant) return null;
  const markdown = renderMarkdown(content, { cite: citationRenderer(answer, context), ...flagRendering(content, flagged, context) });
  return h("div", { class: "words", dir: "auto" }, markdown);
}

/** "Searching the documents…", then "Writing…", until the first text arrives. */
function renderProgress({ content, stage = "retrieving" }: ChatMessage, { t }: AnswerContext): Child {
  if (content) return null;
  const dots = h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
  return h("p", { class: "typing", "data-stage": stage }, dots, t(stage));
}

/** Everything below the text of a complete answer. */
function renderDetails(answer: ChatMessage, context: AnswerContext): Child[] {
  const { t } = context;
  const { standing, notice, question, citations = [] } = answer;
  return [
    standing === "stopped" && h("p", { class: "quiet" }, t("stopped")),
    renderFailure(answer, context),
    notice && h("p", { class: "quiet", dir: "auto" }, notice),
    ...renderTopics(answer, context),
    citations.length > 0 && renderSources(citations, context),
    standing === "outside-selection" &&
      question &&
      h("button", { type: "button", class: "offer", on: { click: () => context.askAllDocuments(question) } }, t("allDocuments")),
    renderUnsupported(answer, context),
    renderActions(answer, context),
  ];
}

/** What the language model also wrote, folded: the sources do not clearly support it. */
function renderUnsupported({ unsupported = [] }: ChatMessage, { t }: AnswerContext): Child {
  if (!unsupported.length) return null;
  const texts = unsupported.map((text) => h("div", { dir: "auto" }, renderMarkdown(text)));
  return h("details", { class: "beside" }, h("summary", {}, t("beside")), ...texts);
}

function renderTopics({ nearest = [] }: ChatMessage, { t }: AnswerContext): Child[] {
  if (!nearest.length) return [];
  const topics = nearest.map(({ title, url }) => {
    const path = title.replaceAll(" > ", " › ");
    return h("li", {}, url ? h("a", { href: url, dir: "auto" }, path) : h("bdi", {}, path));
  });
  return [h("p", { class: "quiet" }, t("nearest")), h("ul", { class: "topics" }, ...topics)];
}

/** What to show for each `[n]` in the text. The sources are not known while the answer streams. */
function citationRenderer(answer: ChatMessage, context: AnswerContext): (number: number, occurrence: number) => Node | null {
  return (number, occurrence) => {
    if (answer.selectedText) return document.createTextNode(""); // the reader has the selection at hand
    if (answer.isStreaming || !answer.citations) return h("sup", { class: "mark" }, String(number));
    const source = answer.citations[number - 1];
    return source ? createMark(source, number, occurrence, context) : null;
  };
}

function createMark(source: Source, number: number, occurrence: number, { t, tooltip, openSource }: AnswerContext): HTMLElement {
  const label = `${t("source", { n: number })}: ${sourceTitle(source, ", ")}`;
  const mark = h("button", { type: "button", class: "mark", "aria-label": label }, String(number));
  mark.addEventListener("click", () => openSource(source, occurrence, mark));
  tooltip.attachTo(mark, source, source.quotes[occurrence] ?? null);
  return mark;
}

interface FlagRendering {
  ranges: Range[];
  renderAfter: (range: Range) => Node;
}

/** Underline the sentences that their sources do not fully support, each with a small sign after it. */
function flagRendering(content: string, flagged: FlaggedSentence[], { t }: AnswerContext): FlagRendering {
  const ranges: Range[] = [];
  let from = 0;
  for (const { sentence, verdict } of flagged) {
    const place = findSentence(content, sentence, from);
    if (!place) continue;
    from = place.end;
    ranges.push({ ...place, kind: verdict });
  }
  const renderAfter = ({ kind }: Range): Node => {
    const reason = t(kind as FlaggedSentence["verdict"]);
    const sign = kind === "weak" ? "~" : "?";
    return h("span", { class: `doubt ${kind}`, role: "img", tabindex: "0", "aria-label": reason, title: reason }, sign);
  };
  return { ranges, renderAfter };
}

/** Where a sentence stands in a text that has citation marks between its words and before its full stop. */
function findSentence(content: string, sentence: string, from: number): { start: number; end: number } | null {
  const words = sentence.replace(/[.!?\s]+$/, "").match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu);
  if (!words) return null;
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`${escaped.join("(?:\\s|\\[\\d+\\])*")}(?:[.!?]|\\s*\\[\\d+\\])*`, "gu");
  pattern.lastIndex = from;
  const match = pattern.exec(content);
  return match && { start: match.index, end: pattern.lastIndex };
}

function renderSources(citations: Source[], { t, openSource }: AnswerContext): HTMLElement {
  const items = citations.map((source, index) => {
    const opener = h("button", { type: "button" }, h("span", { class: "number" }, String(index + 1)), h("bdi", {}, sourceTitle(source)));
    opener.addEventListener("click", () => openSource(source, 0, opener));
    const { status } = source;
    return h("li", {}, opener, status && status !== "valid" && h("span", { class: "badge" }, t(`badge-${status}`)));
  });
  return h("ol", { class: "sources", "aria-label": t("sources") }, ...items);
}

function renderFailure(answer: ChatMessage, context: AnswerContext): Child {
  const { failure } = answer;
  if (!failure) return null;
  const { kind, message } = failure;
  const explanation = kind === "refused" ? message : context.t(kind, { o: location.origin });
  const detail = kind === "unavailable" || kind === "broken" ? message : "";
  return h(
    "div",
    { class: "failure", role: "alert", "data-kind": kind },
    renderMarkdown(explanation),
    detail && h("p", { class: "quiet", dir: "auto" }, detail),
    kind === "key" ? context.createKeyForm() : createRetryButton(answer, context),
  );
}

/** A retry button that stays disabled for as long as the server asked to wait. */
function createRetryButton(answer: ChatMessage, { t, retry }: AnswerContext): HTMLElement {
  const label = h("span");
  const button = h("button", { type: "button", class: "retry", on: { click: () => retry(answer) } }, icon(RETRY), label);
  const enabledAt = Date.now() + (answer.failure?.retryAfterSeconds ?? 0) * 1000;
  const update = (): void => {
    const seconds = Math.ceil((enabledAt - Date.now()) / 1000);
    button.disabled = seconds > 0;
    label.textContent = seconds > 0 ? t("retryIn", { n: seconds }) : t("retry");
    if (seconds > 0) setTimeout(update, 250);
  };
  update();
  return button;
}

function renderActions(answer: ChatMessage, { t, copy, retry, vote }: AnswerContext): HTMLElement {
  const { content, standing, question, requestId, confidence } = answer;
  const button = (key: TextKey, path: string, onClick: () => void): HTMLElement => iconButton("plain", path, t(key), onClick);
  const voteButton = (key: "up" | "down", path: string): HTMLElement => {
    const isPressed = answer.vote === key;
    const element = button(key, path, () => vote(answer, isPressed ? null : key));
    element.setAttribute("aria-pressed", String(isPressed));
    return element;
  };
  const bar = h("div", { class: "actions" });
  if (content && standing !== "silent") append(bar, button("copy", COPY, () => copy(answer)));
  // The history has only an excerpt of a selection: such a question cannot be asked again.
  if (standing === "stopped" && question && (answer.idempotencyKey || !answer.selectedText))
    append(bar, button("retry", RETRY, () => retry(answer)));
  if (requestId && standing !== "stopped") append(bar, voteButton("up", THUMB_UP), voteButton("down", THUMB_DOWN));
  if (confidence && standing !== "silent")
    append(bar, h("span", { class: "quiet" }, t("confidence", { n: Math.round(confidence * 100) })));
  return bar;
}
