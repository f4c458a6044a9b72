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
