/**
 * Which threads have an answer that the reader has not seen in this browser.
 *
 * Kept in this browser: how many messages a thread had when the reader last looked at it. A thread that was never open
 * here has nothing unread.
 */
import type { Thread } from "../api";

const KEY = "everlong.seen";
const MOST = 500; // threads that are remembered; the one looked at longest ago goes first

class Seen {
  #counts = $state.raw<ReadonlyMap<string, number>>(this.#read());

  #read(): Map<string, number> {
    try {
      const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
      return new Map(Array.isArray(kept) ? (kept as [string, number][]) : []);
    } catch {
      return new Map();
    }
  }

  /** Note that the reader sees a thread with that many messages. */
  look(id: string, messages: number): void {
    if (this.#counts.get(id) === messages) return;
    const counts = new Map(this.#counts);
    counts.delete(id);
    counts.set(id, messages);
    this.#counts = new Map([...counts].slice(-MOST));
    localStorage.setItem(KEY, JSON.stringify([...this.#counts]));
  }

  unread(thread: Thread): boolean {
    const seen = this.#counts.get(thread.id);
    return seen !== undefined && !thread.running && thread.messages > seen;
  }
}

export const seen = new Seen();
