/**
 * The subscriptions of this tab.
 *
 * They go through the shared worker, which serves all tabs of the browser, or through a stream of the tab's own if
 * there is no worker (on some phones) or it does not start. A tab that was hidden for a while gets no more words; it
 * loads what it missed when it is shown again.
 */
import type { LiveRequest, ThreadEvent } from "../contract";
import { Streams, type Connection, type Heard, type Member, type Want } from "./streams";

export type { Connection };

/** A message from a tab to the worker. "here": it is still alive. */
export type Order = { kind: "want"; wants: Want[] } | { kind: "leave" } | { kind: "nudge" } | { kind: "here" };

const LIVE = "";
const HIDDEN_FOR = 20_000; // milliseconds that a tab is hidden before it is quiet

interface Listener {
  key: number;
  hear: (event: unknown) => void;
  connection: (now: Connection) => void;
  /** An answer is being written: its end is worth waiting for, even in a hidden tab. */
  running: boolean;
}

class Tab {
  #listeners = new Map<string, Listener>();
  #send: ((order: Order) => void) | null = null;
  #alone = false;
  #quiet = false;
  #count = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  listen(channel: string, hear: (event: unknown) => void, connection: (now: Connection) => void): () => void {
    const listener: Listener = { key: ++this.#count, hear, connection, running: false };
    this.#listeners.set(channel, listener);
    this.#ask();
    return () => {
      if (this.#listeners.get(channel) !== listener) return;
      this.#listeners.delete(channel);
      this.#ask();
    };
  }

  /** Connect now, whatever was tried before. */
  nudge(): void {
    if (this.#listeners.size) this.#send?.({ kind: "nudge" });
  }

  #wants(): Want[] {
    const all = [...this.#listeners];
    // A stream of its own is one of few connections: a hidden tab keeps it only for an answer that is being written.
    const wanted = this.#alone && this.#quiet ? all.filter(([, listener]) => listener.running) : all;
    return wanted.map(([channel, { key }]) => ({ channel, key, quiet: this.#quiet }));
  }

  #ask(): void {
    this.#send ??= this.#start();
    this.#send({ kind: "want", wants: this.#wants() });
  }

  #start(): (order: Order) => void {
    document.addEventListener("visibilitychange", () => this.#seen(!document.hidden));
    addEventListener("pagehide", () => this.#send?.({ kind: "leave" }));
    addEventListener("pageshow", (event) => event.persisted && this.#ask());
    addEventListener("online", () => this.nudge());
    return this.#shared() ?? this.#own();
  }

  #seen(visible: boolean): void {
    clearTimeout(this.#timer);
    if (!visible) {
      this.#timer = setTimeout(() => this.#turn(true), HIDDEN_FOR);
    } else {
      this.#turn(false);
    }
  }

  #turn(quiet: boolean): void {
    this.#quiet = quiet;
    if (this.#listeners.size) this.#ask();
  }

  #shared(): ((order: Order) => void) | null {
    if (typeof SharedWorker === "undefined") return null;
    const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "everlong" });
    worker.onerror = () => {
      this.#send = this.#own();
      this.#ask();
    };
    worker.port.onmessage = ({ data }: MessageEvent<Heard | "here?">) => {
      if (data === "here?") worker.port.postMessage({ kind: "here" } satisfies Order);
      else this.#take(data);
    };
    return (order) => worker.port.postMessage(order);
  }

  #own(): (order: Order) => void {
    this.#alone = true;
    const streams = new Streams((path) => new EventSource(path));
    const member: Member = { tell: (heard) => this.#take(heard) };
    return (order) => {
      if (order.kind === "want") streams.want(member, order.wants);
      else if (order.kind === "leave") streams.leave(member);
      else if (order.kind === "nudge") streams.nudge();
    };
  }

  #take(heard: Heard): void {
    const listener = this.#listeners.get(heard.channel);
    if (!listener) return;
    if ("connection" in heard) {
      listener.connection(heard.connection);
      return;
    }
    const event = JSON.parse(heard.data) as { type?: string; running?: boolean };
    if (event.type === "running") this.#runs(listener, event.running === true);
    listener.hear(event);
  }

  #runs(listener: Listener, running: boolean): void {
    listener.running = running;
    if (this.#alone && this.#quiet && !running) this.#ask();
  }
}

const tab = new Tab();

/** Connect now: the reader signed in, or asks for it. */
export const nudge = (): void => tab.nudge();

/** Listen to one thread until the returned function is called. */
export const listenThread = (id: string, hear: (event: ThreadEvent) => void, connection: (now: Connection) => void) =>
  tab.listen(id, (event) => hear(event as ThreadEvent), connection);

/** Listen to the requests that pass through the gateway. */
export const listenLive = (hear: (event: LiveRequest) => void, connection: (now: Connection) => void) =>
  tab.listen(LIVE, (event) => hear(event as LiveRequest), connection);
