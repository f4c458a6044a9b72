/** Renders what the library page reports: ingests, unanswered questions, votes and evaluation scores. */

import type { components } from "../api/schema";
import { type Child, h } from "../dom/elements";
import { formatTime, renderTable, textRow } from "./section";

type Schemas = components["schemas"];

export function renderIngest(ingest: Schemas["Ingest"]): HTMLElement {
  const { state, stage, done, total, errors } = ingest;
  const isRunning = state === "running";
  const progress = `${stage || "running"}${total ? `, ${done} of ${total}` : ""}`;
  const summary = isRunning ? progress : `${ingest.filesProcessed} files, ${ingest.chunksCreated} chunks`;
  return h(
    "div",
    { class: `ingest ${state}` },
    h("p", {}, h("strong", {}, state), ` ${summary} `, h("span", { class: "quiet" }, formatTime(ingest.startedAt))),
    isRunning && total ? h("progress", { max: total, value: done, "aria-label": "Progress of the ingest" }) : null,
    errors.length > 0 && h("ul", { class: "bad" }, ...errors.map((error) => h("li", { dir: "auto" }, error))),
  );
}

export function renderGaps(gaps: Schemas["Gap"][]): Child[] {
  const rows = gaps.map(({ question, times, lastAskedAt }) => textRow(question, String(times), formatTime(lastAskedAt)));
  return rows.length ? [renderTable(["Question", "Times", "Last asked"], rows)] : [];
}

export function renderVotes({ last }: Schemas["FeedbackReport"]): Child[] {
  const rows = last.map(({ vote, question, answer, at }) =>
    textRow(vote === "up" ? "helped" : "did not help", question, answer, formatTime(at)),
  );
  return rows.length ? [renderTable(["Vote", "Question", "Answer", "When"], rows)] : [];
}

/** The scores of the last `citewell eval`. */
export function renderEvaluation({ at, questions, scores }: Schemas["EvaluationReport"]): Child[] {
  if (!at) return [];
  const rows = Object.entries(scores).map(([name, { value, low, high }]) =>
    textRow(name, formatNumber(value), value == null ? "" : `${formatNumber(low)} – ${formatNumber(high)}`),
  );
  return [
    h("p", { class: "quiet" }, `${questions} questions, ${formatTime(at)}`),
    renderTable(["Score", "Value", "95 % interval"], rows),
  ];
}

function formatNumber(value: number | null): string {
  return value !== null ? value.toLocaleString(undefined, { maximumFractionDigits: 3 }) : "–";
}
