/**
 * Messages that the server did not accept, or perhaps did not. They stay in the chat, marked, and survive a reload.
 *
 * A message is stored here before it is sent, under the name that it has on the server too. So it can be sent again,
 * after a lost answer or from another tab, without being stored twice there. A message that turns out to be in the
 * thread is dropped here.
 */
import { api, ApiError, type Saying } from "../api";
import { all, clear, drop, put, weight } from "./database";
import { dropped, noteDropped, noteGone } from "./dropped";

export interface Unsent {
  /** The name of the message, here and on the server. */
  id: string;
  /** "" if its thread could not be created. */
  thread: string;
  saying: Saying;
  at: number;
  state: "sending" | "failed";
  /** What the server said, by kind and in words; "offline" if it said nothing. */
  kind: string;
  reason: string;
}

const MOST = 50;
const LARGEST = 30_000_000; // bytes of one message
const SURELY_OVER = 60_000; // milliseconds after which no tab is still sending

class UnsentMessages {
  #all = $state.raw<Unsent[]>([]);

  /** Load what earlier visits left. */
  async load(): Promise<void> {
    const gone = new Set(dropped());
    const stored = (await all<Unsent>("unsent")).sort((a, b) => a.at - b.at);
    for (const id of gone) void this.#drop(id); // the page was closed before the database dropped it
    const kept = stored.filter((one) => !gone.has(one.id));
    for (const old of kept.slice(0, Math.max(0, kept.length - MOST))) void drop("unsent", old.id);
    const known = new Set(this.#all.map((one) => one.id));
    this.#all = [...kept.slice(-MOST).filter((one) => !known.has(one.id)), ...this.#all];
    // A message that is being sent belongs to another tab, unless it began long ago.
    const now = Date.now();
    for (const one of this.#all) {
      if (one.state === "sending" && !known.has(one.id)) {
        setTimeout(() => void this.#recheck(one.id), Math.max(0, one.at + SURELY_OVER - now));
      }
    }
  }

  async #recheck(id: string): Promise<void> {
    const still = (await all<Unsent>("unsent")).some((one) => one.id === id);
    if (still) this.#change(id, { state: "failed", kind: "closed", reason: "" });
    else this.#all = this.#all.filter((one) => one.id !== id);
  }

  /** The messages of a thread that were not accepted. */
  of(thread: string): Unsent[] {
    return this.#all.filter((one) => one.thread === thread && one.state === "failed");
  }

  /** Whether the server's answer to it is still awaited. */
  isSending(id: string): boolean {
    return this.#all.some((one) => one.id === id && one.state === "sending");
  }

  /** Store a message that is about to be sent. */
  begin(thread: string, saying: Saying): Unsent {
    const message: Unsent = { id: newName(), thread, saying, at: Date.now(), state: "sending", kind: "", reason: "" };
    this.#all = [...this.#all, message];
    this.#keep(message);
    return message;
  }

  /** Send a message as soon as all is `ready`. -> whether the server accepted it */
  async send(message: Unsent, thread: string, ready: Promise<void>): Promise<boolean> {
    const sending = this.#change(message.id, { thread, state: "sending", at: Date.now() }) ?? message;
    try {
      await ready;
      await api.turn(thread, { ...sending.saying, id: message.id });
      this.discard(message.id);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.fail(message.id, error);
      return false;
    }
  }

  fail(id: string, error: ApiError): void {
    this.#change(id, { state: "failed", kind: error.kind, reason: error.message });
  }

  discard(id: string): void {
    this.#all = this.#all.filter((one) => one.id !== id);
    void this.#drop(id);
  }

  async #drop(id: string): Promise<void> {
    noteDropped(id);
    await drop("unsent", id);
    noteGone(id);
  }

  /** Drop the messages that are in a thread after all. */
  settle(ids: Iterable<string>): void {
    if (!this.#all.length) return;
    const standing = new Set(ids);
    for (const one of this.#all) if (standing.has(one.id)) this.discard(one.id);
  }

  /** Drop the messages for a removed thread. */
  forget(thread: string): void {
    for (const one of this.#all) if (one.thread === thread) this.discard(one.id);
  }

  clear(): void {
    this.#all = [];
    void clear("unsent");
  }

  #change(id: string, change: Partial<Unsent>): Unsent | undefined {
    this.#all = this.#all.map((one) => (one.id === id ? { ...one, ...change } : one));
    const changed = this.#all.find((one) => one.id === id);
    if (changed) this.#keep(changed);
    return changed;
  }

  #keep(message: Unsent): void {
    if (weight(message.saying) <= LARGEST) void put("unsent", message.id, message);
  }
}

/** A unique name. `crypto.randomUUID` exists only on https and on this machine. */
export function newName(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const unsent = new UnsentMessages();
