/** The open thread: its rows, the answer that is being written, its context, and what it waits for. */
import { api, ApiError, type Answer, type Ask, type CompactionOutcome, type Context, type Failure, type FileChange, type Row, type Saying, type Thread, type ThreadEvent } from "../api";
import { attention } from "../attention/attention.svelte";
import { deletion } from "../deletion/deletion.svelte";
import { unsent, type Unsent } from "../kept/unsent.svelte";
import { switched } from "../panel/prediction";
import { app } from "./app.svelte";
import { heard, type Piece } from "./live";
import { go, threadHash } from "./route";
import { merge, outcomes, shown, type Outcome } from "./rows";
import { threads } from "./threads.svelte";
import { listenThread, type Connection } from "../stream/tab";
import { t } from "../words";

const PAGE = 100;
const CHANGING = new Set(["write_file", "edit_file"]);
const LEAP = 500; // rows for each request while looking for a far row
const MOST_REFRESHED = 500;
const STREAM_WAIT = 5_000; // milliseconds that a message waits for the stream that will bring its answer

/** The progress of a compaction. "idle": nothing to show. */
export interface Compacting extends Partial<CompactionOutcome> {
  state: "idle" | "started" | "done" | "failed" | "skipped";
  text: string;
  reason: string;
}
const IDLE: Compacting = { state: "idle", text: "", reason: "" };
const TOLD_FOR = 4_000; // milliseconds that "done" stays in view

class Current {
  id = $state<string | null>(null);
  /** Set while the thread is shown as it was before a compaction: no message can be sent then. */
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
  compacting = $state.raw<Compacting>(IDLE);
  asks = $state<Ask[]>([]);
  failure = $state.raw<Failure | null>(null);
  /** Messages that were sent and are not rows yet. */
  waiting = $state.raw<{ id: string; saying: Saying }[]>([]);
  /** The pins by the order of their row. */
  pins = $state.raw<Map<number, string>>(new Map());
  /** Files that calls changed, by the call: they can be restored. */
  changes = $state.raw<Map<string, FileChange>>(new Map());
  #early = $state.raw<Map<string, Outcome>>(new Map());

  shown = $derived(shown(this.rows, deletion.here));
  outcomes = $derived(new Map([...this.#early, ...outcomes(this.rows)]));
  /** The open thread, even if the list does not have it (in the archive or a search). */
  own = $state<Thread | null>(null);
  thread = $derived(this.id ? (threads.find(this.id) ?? this.own) : null);
  model = $derived(this.thread?.model ?? this.context?.model ?? app.state?.default_model ?? "");

  #close: () => void = () => {};
  /** Whether the thread's stream is connected, and the callers that wait for it. */
  heard = $state(false);
  #waiters = new Set<() => void>();
  #older: Promise<void> | null = null;
  /** The number of contexts that were requested or received: a late answer to an older request is not the newest. */
  #contexts = 0;
  #queue: ThreadEvent[] = [];
  #frame = 0;

  /** Show a thread; null shows none. */
  async open(id: string | null, point: number | null = null): Promise<void> {
    if (id === this.id && point === this.point) return;
    this.#leave();
    this.id = id;
    this.point = point;
    if (!id) return;
    this.loading = true;
    if (point === null) {
      this.#close = listenThread(id, (event) => this.#take(event), (now) => this.#connection(now));
      void this.loadContext();
      void this.loadPins();
      void this.loadChanges();
    }
    void this.#loadThread(id);
    try {
      const got = await api.rows(id, { limit: PAGE, point: point ?? undefined });
      if (!this.#still(id, point)) return;
      this.rows = merge(got.rows, this.rows);
      unsent.settle(got.rows.map((row) => row.id));
      this.total = got.total;
      this.complete = got.first;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (this.#still(id, point)) this.missing = error.status === 404;
      if (error.kind === "no_thread") threads.forget(id);
    }
    if (this.#still(id, point)) this.loading = false;
  }

  #leave(): void {
    this.#close();
    attention.forget();
    this.#close = () => {};
    this.#hears(false);
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
    const asked = ++this.#contexts;
    try {
      const context = await api.context(id);
      // A context that the stream brought meanwhile is newer.
      if (this.#still(id) && asked === this.#contexts) this.#takeContext(context);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  #takeContext(context: Context): void {
    const words = this.context && switched(this.context, context);
    this.context = context;
    if (words) app.say(words);
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

  /** Load the rows before the oldest one. A call while rows are loading waits for those. */
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
      // Nothing came, because the server did not answer.
      if (this.rows[0]?.order === oldest) return;
    }
  }

  /** Load the newest rows again: their status in requests may have changed. */
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

  #connection(now: Connection): void {
    // Events between the loading of the rows and the start of the stream were missed.
    const missed = now === "back" || (now === "open" && !(this.connected && this.heard));
    this.connected = now !== "lost";
    if (missed) void this.#catchUp();
  }

  #hears(heard: boolean): void {
    this.heard = heard;
    for (const go of this.#waiters) go();
    this.#waiters.clear();
  }

  /** Wait for the stream, but not too long, so that no event is missed. */
  async #listening(): Promise<void> {
    if (this.heard) return;
    await new Promise<void>((done) => {
      this.#waiters.add(done);
      setTimeout(() => {
        this.#waiters.delete(done);
        done();
      }, STREAM_WAIT);
    });
  }

  async #catchUp(): Promise<void> {
    await Promise.all([this.refresh(), this.loadContext()]);
    // An answer that ended unheard is a row now.
    if (!this.running) this.pieces = [];
    const standing = new Set(this.rows.map((row) => row.id));
    this.waiting = this.waiting.filter((one) => !standing.has(one.id) && (this.running || unsent.isSending(one.id)));
  }

  /** Queue events until the next frame: at 200 tokens a second, the page is drawn once for several of them. */
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
    if (this.id) attention.hear(event, this.id, this.thread?.title ?? "");
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
        this.#contexts += 1;
        this.#takeContext(event.context);
        break;
      case "title":
        if (this.id) threads.note(this.id, { title: event.title });
        break;
      case "compacting":
        this.#compacts(event);
        break;
      case "failed":
        this.failure = event.failure;
        break;
      case "running":
        this.#runs(event.running);
        break;
      case "ended":
        this.#ends();
        break;
      case "removed":
      case "restored":
        deletion.heard(event);
        break;
      case "moved":
        this.#follow(event.thread);
        break;
    }
  }

  #stand(row: Row): void {
    if (row.role === "user" && row.kind === "message") {
      this.waiting = this.waiting.filter((one) => one.id !== row.id);
      unsent.settle([row.id]);
    }
    if (!this.rows.some((other) => other.order === row.order)) this.total += 1;
    this.rows = merge(this.rows, [row]);
    // A compaction or an undo changes the status of the rows before it.
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
    // The stream is connected and reports the current state; messages that wait for it are not sent yet.
    const awaited = this.#waiters.size > 0;
    this.#hears(true);
    if (!running && awaited) return;
    // An answer that began before the stream may have ended without an event.
    if (!running && this.running) void this.refresh();
    this.running = running;
    if (running) this.failure = null;
    else this.asks = []; // no tool waits for an answer any more
    if (this.id) threads.note(this.id, { running });
  }

  #ends(): void {
    this.waiting = [];
    void this.loadChanges();
    void this.refresh();
    void threads.load();
  }

  #compacts({ type: _, state, text, ...outcome }: Extract<ThreadEvent, { type: "compacting" }>): void {
    const words = state === "words" ? this.compacting.text + text : text;
    const now: Compacting = { ...outcome, state: state === "words" ? "started" : state, text: words };
    this.compacting = now;
    if (state !== "started" && state !== "words" && state !== "failed") {
      setTimeout(() => {
        if (this.compacting === now) this.compacting = IDLE;
      }, TOLD_FOR);
    }
  }

  /** Send a message; while a turn runs, it joins the turn. -> whether the server accepted it */
  async say(saying: Saying): Promise<boolean> {
    return this.id !== null && this.#deliver(unsent.begin(this.id, saying));
  }

  /** Send a message in the open thread, or in a new one. `begun` is called as soon as the thread exists. */
  async begin(saying: Saying, begun: () => void): Promise<void> {
    const message = unsent.begin(this.id ?? "", saying);
    if (!(await this.#hasThread(message))) return;
    begun();
    void this.#deliver(message);
  }

  /** Send a message again that was not accepted. */
  async resend(message: Unsent): Promise<void> {
    if (await this.#hasThread(message)) await this.#deliver(message);
  }

  async #hasThread(message: Unsent): Promise<boolean> {
    const refused = this.id === null ? await threads.begin() : null;
    if (refused) unsent.fail(message.id, refused);
    return !refused;
  }

  async #deliver(message: Unsent): Promise<boolean> {
    const id = this.id;
    if (!id) return false;
    this.waiting = [...this.waiting, { id: message.id, saying: message.saying }];
    this.failure = null;
    // Before it is sent: a fast answer may have ended before the server's acceptance arrives.
    const before = this.running;
    this.running = true;
    const taken = await unsent.send(message, id, this.#listening());
    if (!taken && this.#still(id)) {
      this.waiting = this.waiting.filter((other) => other.id !== message.id);
      this.running = before;
    }
    return taken;
  }

  async stop(): Promise<void> {
    const id = this.id;
    if (id) await app.trying(() => api.stop(id));
  }

  /** Answer the message before a row again, with another model if one is named. */
  async regenerate(order: number, model?: string): Promise<void> {
    const id = this.id;
    if (id) await app.trying(async () => this.#follow((await api.regenerate(id, order, model)).id));
  }

  /** Continue the last answer. */
  async goOn(): Promise<void> {
    await this.#answers((id) => api.goOn(id));
  }

  /** Edit a message; the page goes to the new version. -> whether the server accepted it */
  async sayInstead(order: number, saying: Saying): Promise<boolean> {
    const id = this.id;
    return id !== null && (await app.trying(async () => this.#follow((await api.sayInstead(id, order, saying)).thread)));
  }

  /** Switch to another version of the conversation, at the row where it parts from this one. */
  async showVersion(thread: string, order: number): Promise<void> {
    await app.trying(async () => {
      await api.showVersion(thread);
      go(threadHash(thread, { order }));
      await threads.load();
    });
  }

  async retry(): Promise<void> {
    await this.#answers(async (id) => this.#follow((await api.retry(id)).thread));
  }

  /** Make the server answer. `running` is set first: a fast answer may have ended before the acceptance arrives. */
  async #answers(act: (id: string) => Promise<unknown>): Promise<void> {
    const id = this.id;
    if (!id) return;
    const { running, failure } = this;
    this.running = true;
    this.failure = null;
    await this.#listening();
    const taken = await app.trying(() => act(id));
    if (!taken && this.#still(id)) Object.assign(this, { running, failure });
  }

  /** Go to the version in which the conversation continues, even if no event reported the move. */
  #follow(thread: string): void {
    if (thread === this.id) return;
    go(threadHash(thread));
    void threads.load();
  }

  async compact(focus = ""): Promise<void> {
    const id = this.id;
    if (!id) return;
    await this.#listening();
    await app.trying(() => api.compact(id, focus));
  }

  async cancelCompaction(): Promise<void> {
    const id = this.id;
    if (id) await app.trying(() => api.cancelCompaction(id));
  }

  async undo(): Promise<void> {
    const id = this.id;
    if (!id) return;
    this.compacting = IDLE;
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

  /** Restore a file to its state before a call. -> "changed" if somebody else changed it since, unless `force` */
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

  /** Pin a row (it is then always sent), or unpin it. */
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
