/**
 * The names of messages that are about to be dropped from the database.
 *
 * The database works in the background: if the page is closed right after a message was discarded, the message may
 * still be there. These names are written at once, so the next visit drops what the last one could not.
 */

const KEY = "everlong.dropped";
const MOST = 100;

export function dropped(): string[] {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return []; // no storage, or not ours
  }
}

/** Note a message that is being dropped. */
export function noteDropped(id: string): void {
  write([...dropped().filter((name) => name !== id), id].slice(-MOST));
}

/** Note that the database has dropped it. */
export function noteGone(id: string): void {
  write(dropped().filter((name) => name !== id));
}

function write(names: string[]): void {
  try {
    if (names.length) localStorage.setItem(KEY, JSON.stringify(names));
    else localStorage.removeItem(KEY);
  } catch {
    // no storage, or no room in it
  }
}
