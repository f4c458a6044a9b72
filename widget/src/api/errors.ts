/** What can go wrong with a request, in kinds that the pages explain each in its own words. */

export interface Failure {
  /** "unlisted": the server works, but its CORS settings do not allow this site. "cut": the stream ended early. */
  kind: "offline" | "unlisted" | "busy" | "unavailable" | "empty" | "key" | "refused" | "cut" | "broken";
  message: string;
  retryAfterSeconds?: number;
}

export class ApiError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

/** The kind of failure behind an error code or an HTTP status. */
export function classifyError(code: string, message: string, status = 0): Failure {
  if (code === "RATE_LIMITED" || status === 429) return { kind: "busy", message };
  if (code === "EMPTY_KNOWLEDGE_BASE") return { kind: "empty", message };
  if (code === "UNAUTHORIZED" || status === 401) return { kind: "key", message };
  if (/_UNAVAILABLE$/.test(code) || status === 502 || status === 503 || status === 504) return { kind: "unavailable", message };
  if (code === "INTERNAL_ERROR" || status >= 500) return { kind: "broken", message };
  return { kind: "refused", message };
}

/** The failure behind anything that was thrown. */
export function toFailure(error: unknown): Failure {
  // A connection that breaks while it is read throws a TypeError.
  return error instanceof ApiError ? error.failure : { kind: navigator.onLine ? "cut" : "offline", message: "" };
}
