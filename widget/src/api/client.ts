/** Calls the endpoints of the Citewell server. Knows nothing about pages. */

import { type Answer, readAnswer } from "./answer";
import { ApiError, classifyError } from "./errors";
import type { components } from "./schema";
import { readEvents } from "./sse";

type Schemas = components["schemas"];
export type ChunkDetail = Schemas["CitationDetail"];
export type Welcome = Schemas["Welcome"];
export type Vote = "up" | "down" | null;

/** How far the server has got with an answer. */
export type Stage = "retrieving" | "generating";

/** What arrives while the server answers: stages, then text, then the complete answer. */
export type AnswerEvent = { type: "stage"; stage: Stage } | { type: "text"; text: string } | { type: "answer"; answer: Answer };

export interface Connection {
  /** The URL of the server, without a slash at the end; "" is where the page came from. */
  server: string;
  key: string | null;
  project: string | null;
}

export interface AskOptions {
  sessionId: string;
  /** Answer from this text only. */
  selectedText?: string | undefined;
  /** The server stores an exchange once for each key, however often the request is repeated. */
  idempotencyKey: string;
  signal: AbortSignal;
}

interface RequestOptions {
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export class Client {
  constructor(public connection: Connection) {}

  async *ask(question: string, { sessionId, selectedText, idempotencyKey, signal }: AskOptions): AsyncGenerator<AnswerEvent> {
    const body = { query: question, session_id: sessionId, ...(selectedText && { selected_text: selectedText }) };
    const response = await this.#fetch("/chat/stream", { body, signal, headers: { "Idempotency-Key": idempotencyKey } });
    for await (const data of readEvents(response.body!)) {
      const event = parseEvent(data);
      if (!event) continue;
      if (event.error) throw new ApiError(classifyError(event.error.error_code, event.error.message));
      if (event.response) return yield { type: "answer", answer: readAnswer(event.response) };
      if (event.stage) yield { type: "stage", stage: event.stage };
      if (event.delta) yield { type: "text", text: event.delta };
    }
    throw new ApiError({ kind: "cut", message: "" });
  }

  /** Some exchanges of a session, oldest first, and how many there are. */
  async history(sessionId: string, { limit, offset }: { limit: number; offset: number }): Promise<Schemas["HistoryResponse"]> {
    return this.get(`/history/${sessionId}?limit=${limit}&offset=${offset}`);
  }

  async citation(chunkId: string): Promise<ChunkDetail> {
    return this.get(`/api/v1/citations/${encodeURIComponent(chunkId)}`);
  }

  async welcome(): Promise<Welcome> {
    return this.get("/api/v1/welcome");
  }

  async vote(sessionId: string, requestId: string, vote: Vote): Promise<void> {
    const { project } = this.connection;
    await this.#fetch("/api/v1/feedback", {
      body: { session_id: sessionId, request_id: requestId, vote, ...(project && { project_id: project }) },
    });
  }

  async get<T>(path: string): Promise<T> {
    return (await this.#fetch(path)).json();
  }

  async #fetch(path: string, { body, signal, headers }: RequestOptions = {}): Promise<Response> {
    const { server, key, project } = this.connection;
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
      throw new ApiError({ kind: (await isReachable(url)) ? "unlisted" : "offline", message: "" });
    }
    if (response.ok) return response;
    throw await errorOf(response);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const error = (await response.json().catch(() => null)) as Schemas["ErrorResponse"] | null;
  const failure = classifyError(error?.error_code ?? "", error?.message ?? `HTTP ${response.status}`, response.status);
  const seconds = Number(response.headers.get("Retry-After"));
  return new ApiError(seconds > 0 ? { ...failure, retryAfterSeconds: seconds } : failure);
}

/** Whether a server on another origin responds at all: a browser does not tell a CORS error from a network error. */
async function isReachable(url: URL): Promise<boolean> {
  if (url.origin === location.origin) return false;
  return fetch(new URL("/icon.svg", url), { mode: "no-cors", cache: "no-store", credentials: "omit" }).then(
    () => true,
    () => false,
  );
}

/** One event of the stream; null for anything that is not a JSON object. */
function parseEvent(data: string): Schemas["ChatEvent"] | null {
  try {
    const event: unknown = JSON.parse(data);
    return typeof event === "object" && event !== null ? (event as Schemas["ChatEvent"]) : null;
  } catch {
    return null;
  }
}
