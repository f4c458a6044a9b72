/**
 * An answer as the pages show it. `readAnswer` alone reads the server's fields, both for a new answer and for one from
 * the history. A new visible field needs two edits: read it here, show it in `chat/answer.ts`.
 */

import { safeUrl } from "../dom/sanitize";
import type { components } from "./schema";

type Schemas = components["schemas"];
type ApiSource = Schemas["ChatResponse"]["sources"][number];
type Metadata = Schemas["ResponseMetadata"] | null | undefined;

/** How to present an answer. "silent" has sources but no text, because the LLM is down. */
export type Standing = "answered" | "unsure" | "uncovered" | "outside-selection" | "silent" | "stopped" | "failed";

export interface Answer {
  content: string;
  /** The sources that `[1]`, `[2]`… in the text refer to. */
  citations: Source[];
  standing: Standing;
  /** The sentences that their sources do not fully support. */
  flagged: FlaggedSentence[];
  /** What the language model also wrote and the sources do not clearly support; no part of the text. */
  unsupported: string[];
  /** Where nothing was answered: the topics closest to the question. */
  nearest: Schemas["Topic"][];
  notice: string | null;
  /** From 0 to 1; 0 where it is unknown. */
  confidence: number;
  requestId: string | null;
}

/** A cited chunk, and for each citation of it the words that the answer uses. */
export interface Source {
  chapterTitle: string;
  section: string;
  sourceFile: string;
  excerpt: string;
  chunkId: string | null;
  score: number;
  url: string | null;
  line: number | null;
  page: number | null;
  quotes: (string | null)[];
  /** Whether the document has changed since it was cited. */
  status: Schemas["SourceCitation"]["status"];
}

export interface FlaggedSentence {
  sentence: string;
  verdict: Exclude<Schemas["SupportedSentence"]["verdict"], "supported">;
}

export function readAnswer(response: Schemas["ChatResponse"] | Schemas["HistoryEntry"]): Answer {
  const { confidence, metadata } = response;
  const complete = !("complete" in response) || response.complete;
  return {
    content: "response" in response ? response.response : (response.answer ?? response.fallback_message ?? ""),
    citations: response.sources.flatMap((source) => (isSelection(source) ? [] : [readSource(source)])),
    standing: complete ? readStanding(metadata, confidence) : "stopped",
    flagged: (response.support ?? []).flatMap(({ sentence, verdict }) => (verdict === "supported" ? [] : [{ sentence, verdict }])),
    unsupported: response.unsupported ?? [],
    nearest: response.nearest ?? [],
    notice: response.notice ?? null,
    confidence: confidence ?? 0,
    requestId: metadata?.request_id ?? null,
  };
}

/** The text that the reader had selected, if the answer is about a selection. */
export function readSelection(sources: ApiSource[]): string | null {
  return sources.find(isSelection)?.snippet ?? null;
}

function isSelection(source: ApiSource): source is Schemas["SelectedTextCitation"] {
  return "source_type" in source;
}

function readStanding(metadata: Metadata, confidence: number | null | undefined): Standing {
  if (metadata?.mode === "retrieval_only") return "silent";
  if (metadata?.mode === "no_results") return "uncovered";
  if (metadata?.mode === "selected_text" && confidence === 0) return "outside-selection";
  return metadata?.low_confidence ? "unsure" : "answered";
}

function readSource(source: Schemas["SourceCitation"]): Source {
  const url = safeUrl(source.source_url);
  const quotes = source.quotes ?? [];
  return {
    chapterTitle: source.title,
    section: source.section === source.title ? "" : source.section,
    sourceFile: (url ? new URL(url).pathname : source.source_url).replace(/^\//, ""),
    excerpt: quotes.find((quote) => quote) ?? source.snippet,
    chunkId: source.chunk_id ?? null,
    score: source.similarity_score,
    url,
    line: source.line ?? null,
    page: source.page ?? null,
    quotes,
    status: source.status ?? null,
  };
}

/** "Chapter › Section", as a source is called everywhere. */
export function sourceTitle({ chapterTitle, section }: Source, separator = " › "): string {
  return [chapterTitle, section].filter(Boolean).join(separator);
}
