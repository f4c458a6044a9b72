import { ApiError } from "../api/errors";

/** What went wrong, for the author. */
export function errorMessage(error: unknown): string {
  const message = error instanceof ApiError ? error.failure.message : "";
  return message || "Cannot reach the server.";
}
