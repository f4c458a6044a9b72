/** The doors of the server that a reader needs, and how their words become ours. Knows no page. */

import type { components } from "./api";
import type { Doubt, Failure, Outcome, Selection, Source, Standing, StreamEvent, Told, Topic, Vote } from "./model";
import { safeUrl } from "./safe";
import { events } from "./sse";

type Schemas = components["schemas"];
type Answered = Schemas["ChatResponse"];
type ChatEvent = Schemas["ChatEvent"];
type Entry = Schemas["HistoryEntry"];
type AnySource = Answered["sources"][number];
export type CitedChunk = Schemas["CitationDetail"];
export type Welcome = Schemas["Welcome"];

/** What reaches the page while an answer comes: the contract's events, and what they do not say. */
export type Heard =
  { type: "reached"; stage: "retrieving" | "generating" } | ({ type: "event" } & StreamEvent & { outcome?: Outcome; sessionId?: string });

export class Problem extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

export interface Where {
  /** Where the server is, without a slash at the end; "" is where the page came from. */
  server: string;
  key: string | null;
  project: string | null;
}

export class Client {
  constructor(public where: Where) {}

  async *ask(
    question: string,
    { sessionId, selection, once, signal }: { sessionId: string; selection?: Selection | undefined; once: string; signal: AbortSignal },
  ): AsyncGenerator<Heard> {
    const body = { query: question, session_id: sessionId, ...(selection && { selected_text: selection.text }) };
    const response = await this.#fetch("/chat/stream", { body, signal, headers: { "Idempotency-Key": once } });
    for await (const data of events(response.body!)) {
      const event = parsed(data);
      if (!event) continue;
      if (event.error) throw new Problem(failure(event.error.error_code, event.error.message));
      if (event.response) {
        const outcome = told(event.response);
        yield { type: "event", content: "", done: true, outcome, sessionId: event.response.session_id };
        return;
      }
      if (event.stage) yield { type: "reached", stage: event.stage };
      if (event.delta) yield { type: "event", content: event.delta, done: false };
    }
    throw new Problem({ kind: "cut", message: "" });
  }

  /** Some exchanges of a session, oldest first, and how many there are in all. */
  async history(sessionId: string, { limit, offset }: { limit: number; offset: number }): Promise<{ messages: Told[]; total: number }> {
    const path = `/history/${sessionId}?limit=${limit}&offset=${offset}`;
    const page = (await (await this.#fetch(path)).json()) as Schemas["HistoryResponse"];
    return {
      messages: page.entries.flatMap((entry, number) => exchange(entry, `${sessionId}-${offset + number}`)),
      total: page.total_entries,
    };
  }

  async citation(chunkId: string): Promise<CitedChunk> {
    return (await this.#fetch(`/api/v1/citations/${encodeURIComponent(chunkId)}`)).json();
  }

  async welcome(): Promise<Welcome> {
    return (await this.#fetch("/api/v1/welcome")).json();
  }

  async vote(sessionId: string, requestId: string, vote: Vote): Promise<void> {
    const project = this.where.project;
    await this.#fetch("/api/v1/feedback", {
      body: { session_id: sessionId, request_id: requestId, vote, ...(project && { project_id: project }) },
    });
  }

  /** Any other door, as the library page needs them. */
  async get(path: string): Promise<unknown> {
    return (await this.#fetch(path)).json();
  }

  async #fetch(
    path: string,
    { body, signal, headers }: { body?: unknown; signal?: AbortSignal; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const { server, key, project } = this.where;
    const url = new URL(server + path, location.href);
    if (project && !path.startsWith("/api/v1/feedback") && !path.includes("/projects")) url.searchParams.set("project_id", project);
    let response: Response;
    try {
      response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
        headers: {
          ...(body !== undefined && { "Content-Type": "application/json" }),
          ...(key && { Authorization: `Bearer ${key}` }),
          ...headers,
        },
        credentials: "omit",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem({ kind: (await this.#isThere(url)) ? "unlisted" : "offline", message: "" });
    }
    if (response.ok) return response;
    const said = (await response.json().catch(() => null)) as Schemas["ErrorResponse"] | null;
    const problem = failure(said?.error_code ?? "", said?.message ?? `HTTP ${response.status}`, response.status);
    const wait = Number(response.headers.get("Retry-After"));
    throw new Problem(wait > 0 ? { ...problem, retryAfterSeconds: wait } : problem);
  }

  /** Whether another origin answers at all: a browser does not say that it only keeps an answer from this site. */
  async #isThere(url: URL): Promise<boolean> {
    if (url.origin === location.origin) return false;
    return fetch(new URL("/icon.svg", url), { mode: "no-cors", cache: "no-store", credentials: "omit" }).then(
      () => true,
      () => false,
    );
  }
}

/** An event that is one of ours; anything else a server might send is passed over. */
function parsed(data: string): ChatEvent | null {
  try {
    const event: unknown = JSON.parse(data);
    return typeof event === "object" && event !== null ? (event as ChatEvent) : null;
  } catch {
    return null;
  }
}

function failure(code: string, message: string, status = 0): Failure {
  if (code === "RATE_LIMITED" || status === 429) return { kind: "busy", message };
  if (code === "EMPTY_KNOWLEDGE_BASE") return { kind: "empty", message };
  if (code === "UNAUTHORIZED" || status === 401) return { kind: "key", message };
  if (/_UNAVAILABLE$/.test(code) || status === 502 || status === 503 || status === 504) return { kind: "unavailable", message };
  if (code === "INTERNAL_ERROR" || status >= 500) return { kind: "broken", message };
  return { kind: "refused", message };
}

/** The last event of an answer. */
export function told(response: Answered): Outcome {
  const { answer, fallback_message, sources, metadata, confidence, nearest, support, notice } = response;
  return settled({ text: answer ?? fallback_message ?? "", sources, confidence, nearest, support, notice }, metadata, true);
}

/** A kept exchange as the two messages that it was. */
function exchange(entry: Entry, id: string): Told[] {
  const at = new Date(entry.timestamp);
  const { response: text, sources, confidence, nearest, support, notice } = entry;
  const outcome = settled({ text, sources, confidence, nearest, support, notice }, entry.metadata ?? null, entry.complete ?? true);
  const selected = sources.find(isSelection);
  const selection = selected ? { text: selected.snippet } : undefined;
  const question: Told = { id: `${id}-q`, role: "user", content: entry.query, timestamp: at, ...(selection && { selection }) };
  const answer: Told = {
    id,
    role: "assistant",
    timestamp: at,
    question: entry.query,
    ...outcome,
    vote: entry.feedback ?? null,
    ...(selection && { selection }),
  };
  return [question, answer];
}

interface Words {
  text: string;
  sources: AnySource[];
  confidence?: number | null | undefined;
  nearest?: Schemas["Topic"][] | null | undefined;
  support?: Schemas["SupportedSentence"][] | null | undefined;
  notice?: string | null | undefined;
}

function settled(words: Words, metadata: Schemas["ResponseMetadata"] | null, complete: boolean): Outcome {
  const { text, sources, confidence, nearest, support, notice } = words;
  return {
    content: text,
    citations: sources.flatMap((one) => (isSelection(one) ? [] : [source(one)])),
    standing: complete ? standing(metadata, confidence) : "stopped",
    doubts: (support ?? []).flatMap(({ sentence, verdict }): Doubt[] => (verdict === "supported" ? [] : [{ sentence, verdict }])),
    nearest: (nearest ?? []).map((one): Topic => ({ title: one.title, file: one.source_file, url: one.url ?? null })),
    ...(confidence !== null && confidence !== undefined && { confidence }),
    ...(notice && { notice }),
    ...(metadata && { requestId: metadata.request_id }),
  };
}

function standing(metadata: Schemas["ResponseMetadata"] | null, confidence: number | null | undefined): Standing {
  if (metadata?.mode === "retrieval_only") return "silent";
  if (metadata?.mode === "no_results") return "uncovered";
  if (metadata?.mode === "selected_text" && confidence === 0) return "outside-selection";
  return metadata?.low_confidence ? "unsure" : "answered";
}

function isSelection(one: AnySource): one is Schemas["SelectedTextCitation"] {
  return "source_type" in one;
}

function source(one: Schemas["SourceCitation"]): Source {
  const live = safeUrl(one.source_url);
  const quotes = one.quotes ?? [];
  return {
    chapter: one.title,
    chapterTitle: one.title,
    sourceFile: (live ? new URL(live).pathname : one.source_url).replace(/^\//, ""),
    excerpt: quotes.find((quote) => quote) ?? one.snippet,
    chunkId: one.chunk_id ?? null,
    section: one.section === one.title ? "" : one.section,
    score: one.similarity_score,
    url: live,
    line: one.line ?? null,
    page: one.page ?? null,
    quotes,
    status: one.status ?? null,
  };
}
