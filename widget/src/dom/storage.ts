/** Browser storage that never throws. In private windows or with cookies blocked, even reading it would throw. */

export interface SafeStorage {
  get(name: string): string | null;
  set(name: string, value: string): void;
}

/** Lasts as long as the tab. */
export const tabStorage = safeStorage(() => sessionStorage);

/** Shared by all tabs of the site. */
export const siteStorage = safeStorage(() => localStorage);

function safeStorage(open: () => Storage): SafeStorage {
  return {
    get: (name) => {
      try {
        return open().getItem(name);
      } catch {
        return null;
      }
    },
    set: (name, value) => {
      try {
        open().setItem(name, value);
      } catch {
        // Full or blocked: the value is lost when the page closes.
      }
    },
  };
}
