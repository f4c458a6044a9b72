/** The ids of sessions and messages: all are UUIDs. */

/** A random UUID, also on pages served over plain HTTP, where `crypto.randomUUID` is missing. */
export function randomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** From the id of an answer that of its question, and back: they differ in the last bit. */
export function partnerId(id: string): string {
  return id.slice(0, -1) + (parseInt(id.slice(-1), 16) ^ 1).toString(16);
}

/** The id of an answer in the history of a session, by its position (from 0): the same each time it is loaded. */
export function storedAnswerId(sessionId: string, position: number): string {
  const last = (parseInt(sessionId.slice(-12), 16) + 2 * (position + 1)) % 2 ** 48;
  return sessionId.slice(0, -12) + last.toString(16).padStart(12, "0");
}
