/**
 * One stream of events for all tabs of a browser.
 *
 * Owns the only EventSource. Its address names every thread that some tab has open, with the number of the last event
 * that was received. When these threads change, or the connection is lost, a new EventSource continues from these
 * numbers, so no event is lost or received twice. The EventSource never reconnects by itself: it knows only one number.
 *
 * It runs in a shared worker (worker.ts), or in the tab itself if the browser has none (tab.ts).
 */

/** A channel that a tab listens to: a thread by its id, or "" for the gateway's requests. */
export interface Want {
  channel: string;
  /** Distinguishes a subscription of the tab from a later one to the same channel. */
  key: number;
  /** The tab is hidden: it gets no words, only that an answer came or a question waits. */
  quiet: boolean;
}

/** `lost`: no connection; `open`: the current state comes first, then all events; `back`: the same after a pause. */
export type Connection = "open" | "lost" | "back";

export type Heard = { channel: string; data: string } | { channel: string; connection: Connection };

/** A tab. */
export interface Member {
  tell(heard: Heard): void;
}

/** The parts of an EventSource that are needed here. */
export interface Source {
  addEventListener(type: string, hear: (message: MessageEvent<string>) => void): void;
  close(): void;
}

/** awaiting: it has no state yet; greeted: it is receiving the current state; following: it receives events. */
interface Place extends Want {
  state: "awaiting" | "greeted" | "following";
  /** It was subscribed before, and was quiet meanwhile. */
  back: boolean;
}

const FIRST_WAIT = 500; // milliseconds before a lost stream is opened again; doubles up to LONGEST_WAIT
const LONGEST_WAIT = 15_000;
const GATHER = 10; // milliseconds in which several changes make one new stream

export class Streams {
  #members = new Map<Member, Map<string, Place>>();
  #last = new Map<string, string>();
  #source: Source | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_WAIT;
  #open: (path: string) => Source;

  constructor(open: (path: string) => Source) {
    this.#open = open;
  }

  /** Subscribe a tab to these channels, and no others. */
  want(member: Member, wants: Want[]): void {
    const before = this.#members.get(member);
    const places = new Map<string, Place>();
    let changed = (before?.size ?? 0) !== wants.length;
    for (const want of wants) {
      const old = before?.get(want.channel);
      const place = old?.key === want.key ? moved(old, want.quiet) : fresh(want);
      places.set(want.channel, place);
      changed ||= place !== old;
    }
    this.#members.set(member, places);
    if (changed) this.#soon(GATHER);
  }

  /** Remove a tab that is gone. */
  leave(member: Member): void {
    const had = this.#members.get(member);
    this.#members.delete(member);
    if (had?.size) this.#soon(GATHER);
  }

  /** Connect now: the reader is back, signed in, or has a network again. */
  nudge(): void {
    this.#wait = FIRST_WAIT;
    this.#connect();
  }

  #soon(wait: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  #places(): Map<string, Place[]> {
    const found = new Map<string, Place[]>();
    for (const places of this.#members.values()) {
      for (const place of places.values()) {
        // A tab that was receiving the current state may have only a part of it: it receives all of it again, and loads
        // what happened in between.
        if (place.state === "greeted") Object.assign(place, { state: "awaiting", back: true });
        found.set(place.channel, [...(found.get(place.channel) ?? []), place]);
      }
    }
    return found;
  }

  #connect(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    const places = this.#places();
    for (const channel of this.#last.keys()) if (!places.has(channel)) this.#last.delete(channel);
    if (!places.size) return;
    const source = this.#open(address(places, this.#last));
    this.#source = source;
    const heard = (name: "message" | "hello" | "anew") =>
      source.addEventListener(name, (message) => {
        if (source === this.#source) this.#hear(name, message.lastEventId, message.data);
      });
    heard("message");
    heard("hello");
    heard("anew");
    source.addEventListener("open", () => {
      this.#wait = FIRST_WAIT;
      this.#tellConnection("open", (place) => place.state === "following");
    });
    source.addEventListener("error", () => {
      if (source !== this.#source) return;
      source.close();
      this.#tellConnection("lost", () => true);
      this.#soon(this.#wait);
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    });
  }

  #hear(name: "message" | "hello" | "anew", numbered: string, data: string): void {
    const at = numbered.indexOf("@");
    const channel = decodeURIComponent(numbered.slice(at + 1));
    this.#last.set(channel, numbered.slice(0, at));
    for (const [member, places] of this.#members) {
      const place = places.get(channel);
      if (place && follows(member, place, name)) member.tell({ channel, data });
    }
  }

  #tellConnection(connection: Connection, whom: (place: Place) => boolean): void {
    for (const [member, places] of this.#members) {
      for (const place of places.values()) if (whom(place)) member.tell({ channel: place.channel, connection });
    }
  }
}

/** A new subscription. The gateway's requests have no state to send first. */
function fresh(want: Want): Place {
  return { ...want, state: want.channel ? "awaiting" : "following", back: false };
}

/** The same subscription after its tab was hidden or shown. A tab that is shown again has missed the words. */
function moved(place: Place, quiet: boolean): Place {
  if (place.quiet === quiet) return place;
  if (quiet) return { ...place, quiet };
  return { ...place, quiet, back: true, state: place.channel ? "awaiting" : "following" };
}

/** Update a place for an event of its channel. -> whether its tab gets the event */
function follows(member: Member, place: Place, name: "message" | "hello" | "anew"): boolean {
  const waits = place.state === "awaiting";
  if (name === "message" ? waits : name === "hello" && place.state === "following") return false;
  if (waits) member.tell({ channel: place.channel, connection: place.back ? "back" : "open" });
  if (waits) place.back = false;
  place.state = name === "message" ? "following" : "greeted";
  return true;
}

/** The path of the stream. A thread that two tabs have open is named once. */
function address(places: Map<string, Place[]>, last: Map<string, string>): string {
  const fields: [string, string][] = [];
  for (const [channel, all] of places) {
    const isNew = all.every((place) => place.state === "awaiting");
    const from = isNew ? "" : (last.get(channel) ?? "");
    if (!channel) {
      fields.push(["live", from]);
      continue;
    }
    fields.push(["thread", `${channel}:${from}`]);
    if (from && all.some((place) => place.state === "awaiting")) fields.push(["fresh", channel]);
    if (all.every((place) => place.quiet)) fields.push(["quiet", channel]);
  }
  return `/everlong/api/events?${new URLSearchParams(fields)}`;
}
