/** Which conversation a tab is in. A new tab goes on with the last one; a tab that was there keeps its own. */

export function uuid(): string {
  // `crypto.randomUUID` is missing on pages that came over plain http.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

const UUID4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

export class Memory {
  constructor(private readonly name: string) {}

  session(): string | null {
    const kept = read(sessionStorage_(), this.name) ?? read(localStorage_(), this.name);
    return kept && UUID4.test(kept) ? kept : null;
  }

  keep(session: string): void {
    for (const storage of [sessionStorage_(), localStorage_()]) write(storage, this.name, session);
  }
}

/** Browsers that keep nothing (private windows, blocked cookies) throw on a mere look. */
function sessionStorage_(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

function localStorage_(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

function read(storage: Storage | null, name: string): string | null {
  return storage?.getItem(name) ?? null;
}

function write(storage: Storage | null, name: string, value: string): void {
  try {
    storage?.setItem(name, value);
  } catch {
    // full, or not allowed: then it is forgotten with the page
  }
}

/** A word that lasts as long as the tab. */
export const tab = {
  get: (name: string): string | null => read(sessionStorage_(), name),
  set: (name: string, value: string): void => write(sessionStorage_(), name, value),
};
