/** The open thread: its rows, the answer that is being given, its context, and what it waits for. */
import { api, ApiError, listenThread, type Answer, type Ask, type Context, type FileChange, type Row, type Saying, type Thread, type ThreadEvent } from "../api";
import { app } from "./app.svelte";
import { heard, type Piece } from "./live";
import { go, threadHash } from "./route";
import { merge, outcomes, shown, type Outcome } from "./rows";
import { threads } from "./threads.svelte";
import { t } from "../words";

const PAGE = 100;
const CHANGING = new Set(["write_file", "edit_file"]);
const LEAP = 500; // rows for each request while looking for a far row
const MOST_REFRESHED = 500;

/** A compaction as it goes on. "idle": nothing to tell. */
export interface Compacting {
  state: "idle" | "started" | "done" | "failed" | "skipped";
  text: string;
  reason: string;
}
const IDLE: Compacting = { state: "idle", text: "", reason: "" };
const TOLD_FOR = 4_000; // milliseconds that "done" stays in view

class Current {
  id = $state<string | null>(null);
  /** Set while the thread is shown as it was before a compaction: nothing can be said then. */
  point = $state<number | null>(null);
  rows = $state.raw<Row[]>([]);
  total = $state(0);
  /** No older row is left to load. */
  complete = $state(false);
  loading = $state(false);
  missing = $state(false);
  pieces = $state.raw<Piece[]>([]);
  running = $state(false);
  connected = $state(true);
  context = $state<Context | null>(null);
  compacting = $state<Compacting>(IDLE);
  asks = $state<Ask[]>([]);
  failure = $state<{ message: string; retry: boolean } | null>(null);
  /** Words that were sent and do not stand as a row yet. */
  waiting = $state.raw<{ id: number; saying: Saying }[]>([]);
  /** The pins by the order of their row. */
  pins = $state.raw<Map<number, string>>(new Map());
  /** Files that calls changed, by the call: they can be restored. */
  changes = $state.raw<Map<string, FileChange>>(new Map());
  #early = $state.raw<Map<string, Outcome>>(new Map());

  shown = $derived(shown(this.rows));
  outcomes = $derived(new Map([...this.#early, ...outcomes(this.rows)]));
  /** Known even where the list does not hold it (the archive, a search). */
  own = $state<Thread | null>(null);
  thread = $derived(this.id ? (threads.find(this.id) ?? this.own) : null);
  model = $derived(this.thread?.model ?? this.context?.model ?? app.state?.default_model ?? "");

  #close: () => void = () => {};
  #older: Promise<void> | null = null;
  #queue: ThreadEvent[] = [];
  #frame = 0;
  #waits = 0;

  /** Show a thread; null shows none. */
  async open(id: string | null, point: number | null = null): Promise<void> {
    if (id === this.id && point === this.point) return;
    this.#leave();
    this.id = id;
    this.point = point;
    if (!id) return;
    this.loading = true;
    if (point === null) {
      this.#close = listenThread(id, (event) => this.#take(event), (now) => this.#connection(now === "open"));
      void this.loadContext();
      void this.loadPins();
      void this.loadChanges();
    }
    void this.#loadThread(id);
    try {
      const got = await api.rows(id, { limit: PAGE, point: point ?? undefined });
      if (!this.#still(id, point)) return;
      this.rows = merge(got.rows, this.rows);
      this.total = got.total;
      this.complete = got.first;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (this.#still(id, point)) this.missing = error.status === 404;
    }
    if (this.#still(id, point)) this.loading = false;
  }

  #leave(): void {
    this.#close();
    this.#close = () => {};
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#queue = [];
    this.#older = null;
    this.rows = [];
    this.pieces = [];
    this.asks = [];
    this.waiting = [];
    this.pins = new Map();
    this.changes = new Map();
    this.#early = new Map();
    this.total = 0;
    this.complete = this.loading = this.missing = this.running = false;
    this.connected = true;
    this.own = null;
    this.context = null;
    this.failure = null;
    this.compacting = IDLE;
  }

  #still(id: string, point: number | null = this.point): boolean {
    return this.id === id && this.point === point;
  }

  async #loadThread(id: string): Promise<void> {
    try {
      const thread = await api.thread(id);
      if (this.id === id) this.own = thread;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  async loadContext(): Promise<void> {
    const id = this.id;
    if (!id) return;
    try {
      const context = await api.context(id);
      if (this.#still(id)) this.context = context;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  async loadPins(): Promise<void> {
    const id = this.id;
    if (!id) return;
    try {
      const pins = await api.pins(id);
      if (this.#still(id)) this.pins = new Map(pins.flatMap((pin) => (pin.order === null ? [] : [[pin.order, pin.id]])));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** Load the rows before the oldest one; who asks while they are on their way waits for these. */
  loadOlder(limit = PAGE): Promise<void> {
    const id = this.id;
    if (!id || this.complete || this.rows.length === 0) return Promise.resolve();
    this.#older ??= this.#readOlder(id, limit).finally(() => (this.#older = null));
    return this.#older;
  }

  async #readOlder(id: string, limit: number): Promise<void> {
    this.loading = true;
    const point = this.point;
    await app.trying(async () => {
      const got = await api.rows(id, { before: this.rows[0].order, limit, point: point ?? undefined });
      if (!this.#still(id, point)) return;
      this.rows = merge(this.rows, got.rows);
      this.complete = got.first || got.rows.length === 0;
      this.total = got.total;
    });
    if (this.#still(id, point)) this.loading = false;
  }

  /** Make sure that a row is loaded, however old. */
  async reach(order: number): Promise<void> {
    const id = this.id;
    for (;;) {
      const oldest = this.rows[0]?.order;
      if (this.id !== id || this.complete || oldest === undefined || oldest <= order) return;
      await this.loadOlder(LEAP);
      // Nothing came, for the server did not answer.
      if (this.rows[0]?.order === oldest) return;
    }
  }

  /** Read the newest rows again: what was sent of them may have changed. */
  async refresh(): Promise<void> {
    const id = this.id;
    if (!id || this.point !== null) return;
    try {
      const limit = Math.min(Math.max(this.rows.length, PAGE), MOST_REFRESHED);
      const got = await api.rows(id, { limit });
      if (!this.#still(id)) return;
      this.rows = merge(this.rows, got.rows);
      this.total = got.total;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  #connection(open: boolean): void {
    // What was said before the stream was there may be answered already, unheard.
    const missed = open && (!this.connected || this.waiting.length > 0);
    this.connected = open;
    if (missed) void this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    await Promise.all([this.refresh(), this.loadContext()]);
    if (!this.running) this.waiting = [];
  }

  /** Events are kept until the next frame: at 200 tokens a second the page is drawn once for several of them. */
  #take(event: ThreadEvent): void {
    this.#queue.push(event);
    if (document.hidden) this.#drain();
    else this.#frame ||= requestAnimationFrame(() => this.#drain());
  }

  #drain(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const events = this.#queue;
    this.#queue = [];
    let pieces = this.pieces;
    for (const event of events) {
      if (event.type === "call" && this.rows.some((row) => row.calls.some((call) => call.id === event.id))) continue;
      pieces = heard(pieces, event);
      this.#apply(event);
    }
    this.pieces = pieces;
  }

  #apply(event: ThreadEvent): void {
    switch (event.type) {
      case "row":
        this.#stand(event.row);
        break;
      case "result": {
        const result = { ...event, call: event.id, cut: false, ref: null };
        this.#early = new Map(this.#early).set(event.id, { result, row: null, seconds: event.seconds });
        if (CHANGING.has(event.name)) void this.loadChanges();
        break;
      }
      case "ask":
        if (!this.asks.some((ask) => ask.id === event.id)) this.asks.push(event);
        break;
      case "answered":
        this.asks = this.asks.filter((ask) => ask.id !== event.id);
        break;
      case "refused":
        if (!event.answered) app.say(event.reason, true);
        break;
      case "reset":
        this.#startOver();
        break;
      case "context":
        this.context = event.context;
        break;
      case "title":
        if (this.id) threads.note(this.id, { title: event.title });
        break;
      case "compacting":
        this.#compacts(event.state, event.text, event.reason);
        break;
      case "failed":
        this.failure = { message: event.message, retry: event.retry };
        break;
      case "running":
        this.#runs(event.running);
        break;
      case "ended":
        this.#ends();
        break;
      case "moved":
        go(threadHash(event.thread));
        void threads.load();
        break;
    }
  }

  #stand(row: Row): void {
    if (row.role === "user" && row.kind === "message") this.waiting = this.waiting.slice(1);
    if (!this.rows.some((other) => other.order === row.order)) this.total += 1;
    this.rows = merge(this.rows, [row]);
    // A compaction, a cut or an undo changes what is sent of the rows before it.
    if (row.kind !== "message" && row.kind !== "recalled") void this.refresh();
  }

  #startOver(): void {
    this.asks = [];
    this.waiting = [];
    this.compacting = IDLE;
    void this.refresh();
    void this.loadContext();
  }

  #runs(running: boolean): void {
    this.running = running;
    if (running) this.failure = null;
    else this.asks = []; // nobody waits for an answer any more
    if (this.id) threads.note(this.id, { running });
  }

  #ends(): void {
    this.waiting = [];
    void this.loadChanges();
    void this.refresh();
    void threads.load();
  }

  #compacts(state: Compacting["state"] | "words", text: string, reason: string): void {
    const words = state === "words" ? this.compacting.text + text : text;
    const now: Compacting = { state: state === "words" ? "started" : state, text: words, reason };
    this.compacting = now;
    if (state === "done" || state === "skipped") {
      setTimeout(() => {
        if (this.compacting === now) this.compacting = IDLE;
      }, TOLD_FOR);
    }
  }

  /** Say something; while a turn runs it enters that turn. -> whether the server took it */
  async say(saying: Saying): Promise<boolean> {
    const id = this.id;
    if (!id) return false;
    const waiting = { id: ++this.#waits, saying };
    this.waiting = [...this.waiting, waiting];
    this.failure = null;
    // Before it is sent: a fast answer may be over when the server's "taken" arrives.
    const before = this.running;
    this.running = true;
    const taken = await app.trying(() => api.turn(id, saying));
    if (!taken && this.#still(id)) {
      this.waiting = this.waiting.filter((other) => other !== waiting);
      this.running = before;
    }
    return taken;
  }

  async stop(): Promise<void> {
    const id = this.id;
    if (id) await app.trying(() => api.stop(id));
  }

  async regenerate(): Promise<void> {
    const id = this.id;
    if (id) await app.trying(() => api.regenerate(id));
  }

  async retry(): Promise<void> {
    const id = this.id;
    if (id && (await app.trying(() => api.retry(id)))) this.failure = null;
  }

  async compact(focus = ""): Promise<void> {
    const id = this.id;
    if (id) await app.trying(() => api.compact(id, focus));
  }

  async undo(): Promise<void> {
    const id = this.id;
    if (!id) return;
    await app.trying(() => api.undo(id));
    await Promise.all([this.refresh(), this.loadContext()]);
  }

  dismissCompacting(): void {
    this.compacting = IDLE;
  }

  async answer(ask: Ask, answer: Answer): Promise<void> {
    const id = this.id;
    if (id && (await app.trying(() => api.answer(id, ask.id, answer)))) {
      this.asks = this.asks.filter((other) => other.id !== ask.id);
    }
  }

  async loadChanges(): Promise<void> {
    const id = this.id;
    if (!id) return;
    await app.trying(async () => {
      const changes = await api.changes(id);
      if (this.#still(id)) this.changes = new Map(changes.reverse().map((change) => [change.call, change]));
    });
  }

  /** Make a file what it was before a call. -> "changed" if somebody else changed it since, and it was not forced */
  async restore(change: FileChange, force = false): Promise<"done" | "changed" | "failed"> {
    const id = this.id;
    if (!id) return "failed";
    const tried = { told: "failed" as "done" | "changed" | "failed" };
    await app.trying(async () => {
      try {
        const restored = await api.restore(id, change.id, force);
        app.say(t(restored.removed ? "restore.removed" : "restore.done", { path: restored.path }));
        tried.told = "done";
      } catch (error) {
        if (!(error instanceof ApiError) || error.kind !== "changed") throw error;
        tried.told = "changed";
      }
    });
    if (tried.told === "done") await this.loadChanges();
    return tried.told;
  }

  /** Pin a row (it is then always sent), or let it go. */
  async togglePin(row: Row): Promise<void> {
    const id = this.id;
    if (!id) return;
    const pin = this.pins.get(row.order);
    const done = await app.trying(() => (pin ? api.unpin(id, pin) : api.pin(id, { order: row.order })));
    if (!done) return;
    this.rows = merge(this.rows, [{ ...row, pinned: !pin }]);
    await Promise.all([this.loadPins(), this.loadContext()]);
  }
}

export const current = new Current();
