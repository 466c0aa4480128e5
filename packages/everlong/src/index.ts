// The engine of a running `everlong serve`, for programs that call their models themselves.

export interface ClientOptions {
  /** Where `everlong serve` listens: else EVERLONG_URL, else http://127.0.0.1:8333. */
  url?: string;
  /** A key of the gateway, if it asks for one: else EVERLONG_KEY. */
  key?: string;
  /** What `fit` does if the server does not answer: gives the messages back as they came, with one warning, or throws. */
  unreachable?: "pass" | "throw";
  /** Milliseconds to wait for an answer. */
  timeout?: number;
  warn?: (line: string) => void;
}

export interface FitRequest<M> {
  messages: M[];
  model?: string;
  provider?: string;
  window?: number;
  budget?: number;
  max_tokens?: number;
  tools?: unknown[];
  system?: unknown;
  preset?: string;
  format?: string;
  thread?: string;
  pins?: (number | string)[];
  recall_tool?: string;
  usage?: unknown;
  refused?: unknown;
}

export interface Edit {
  message: number | null;
  action: string;
  step: string;
  why: string;
  before: number;
  after: number;
  ref: string | null;
}

export interface Fitted<M> {
  messages: M[];
  /** For each message its index in the list that was given; null for one that was changed or added. */
  from: (number | null)[];
  fields: Record<string, unknown>;
  tokens: number;
  budget: number;
  window?: number;
  compactions: number;
  edits: Edit[];
  max_tokens?: number;
  warning?: string;
  thread?: string;
  format: string;
}

export interface Recalled {
  /** For the model, framed as background. */
  text: string;
  original: string | null;
  hits: { role: string; text: string }[];
}

export interface Pins {
  thread: string;
  pins: { pin: string; text: string }[];
}

/** The server refused: `status` is HTTP's, `code` a word for programs. The message says what to do. */
export class EverlongError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
  ) {
    super(message);
    this.name = "EverlongError";
  }
}

const environment: Record<string, string | undefined> =
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};

export class Everlong {
  readonly url: string;
  private warned = false;

  constructor(private readonly options: ClientOptions = {}) {
    this.url = (options.url ?? environment["EVERLONG_URL"] ?? "http://127.0.0.1:8333").replace(/\/+$/, "");
  }

  /** Messages that fit. If the server does not answer they go back as they came, unless `unreachable` is "throw". */
  async fit<M>(request: FitRequest<M>): Promise<Fitted<M>> {
    try {
      return await this.post<Fitted<M>>("fit", request);
    } catch (error) {
      if (error instanceof EverlongError || this.options.unreachable === "throw") throw error;
      this.warnOnce(`everlong does not answer at ${this.url}: messages are sent as they are (start: everlong serve)`);
      const from = request.messages.map((_, at) => at);
      return { messages: request.messages, from, fields: {}, tokens: 0, budget: 0, compactions: 0, edits: [], format: "" };
    }
  }

  async count(request: { messages: unknown; model?: string; tools?: unknown[] }): Promise<number> {
    return (await this.post<{ tokens: number }>("count", request)).tokens;
  }

  /** What left the window of a thread: by a reference from a marker, or by a few words. */
  recall(thread: string, what: string, more: { limit?: number; start?: number } = {}): Promise<Recalled> {
    return this.post("recall", { thread, what, ...more });
  }

  /** Keeps a text in every request of a thread. */
  pin(thread: string, text: string): Promise<Pins & { pin: string }> {
    return this.post("pin", { thread, text });
  }

  unpin(thread: string, pin: string): Promise<Pins> {
    return this.post("unpin", { thread, pin });
  }

  pins(thread: string): Promise<Pins> {
    return this.ask("GET", `pins?thread=${encodeURIComponent(thread)}`);
  }

  /** Says something once, not with every call. */
  warnOnce(line: string): void {
    if (!this.warned) (this.options.warn ?? console.warn)(line);
    this.warned = true;
  }

  get throws(): boolean {
    return this.options.unreachable === "throw";
  }

  private post<T>(path: string, body: unknown): Promise<T> {
    return this.ask("POST", path, JSON.stringify(body));
  }

  private async ask<T>(method: string, path: string, body?: string): Promise<T> {
    const key = this.options.key ?? environment["EVERLONG_KEY"];
    const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
    const signal = AbortSignal.timeout(this.options.timeout ?? 60_000);
    const answer = await fetch(`${this.url}/everlong/${path}`, { method, headers, signal, ...(body ? { body } : {}) });
    const told = (await answer.json()) as T & { error?: { message?: string; code?: string } };
    if (!answer.ok) {
      throw new EverlongError(told.error?.message ?? `status ${answer.status}`, answer.status, told.error?.code ?? "");
    }
    return told;
  }
}
