/** Which session a tab shows. A tab keeps its session; a new tab continues the latest one. */

import { siteStorage, tabStorage } from "../dom/storage";

const UUID4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

export class SessionStore {
  constructor(private readonly name: string) {}

  load(): string | null {
    const sessionId = tabStorage.get(this.name) ?? siteStorage.get(this.name);
    return sessionId && UUID4.test(sessionId) ? sessionId : null;
  }

  save(sessionId: string): void {
    for (const storage of [tabStorage, siteStorage]) storage.set(this.name, sessionId);
  }
}

/** A random UUID, also on pages served over plain HTTP, where `crypto.randomUUID` is missing. */
export function randomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
