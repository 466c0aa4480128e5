/**
 * The typed client of the server's API.
 *
 * Owns the way a request is made and a stream is heard; never keeps state (see src/state). The shapes are in contract.ts.
 */
import type {
  Answer,
  Context,
  FileChange,
  Hit,
  LiveRequest,
  NewSource,
  Pin,
  Recalled,
  Rows,
  Saying,
  Settings,
  Source,
  State,
  Thread,
  ThreadEvent,
  Usage,
  Why,
} from "./contract";

export type * from "./contract";

/** A request that the server refused, or that never reached it (`status` 0, `kind` "offline"). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
let whenLoginNeeded: () => void = () => {};

/** Name what happens when the server asks for its password. */
export function onLoginNeeded(act: () => void): void {
  whenLoginNeeded = act;
}

async function refusal(answer: Response): Promise<ApiError> {
  let kind = "http";
  let message = `${answer.status} ${answer.statusText}`.trim();
  try {
    const told = (await answer.json()) as { error?: { kind?: string; message?: string } };
    kind = told.error?.kind ?? kind;
    message = told.error?.message ?? message;
  } catch {
    // A proxy may answer with a page of its own; the status line is then all there is to say.
  }
  return new ApiError(answer.status, kind, message);
}

async function send(method: Method, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { "x-everlong": "page" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(`/everlong/api${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, "offline", "offline");
  }
  if (answer.ok) return answer;
  const error = await refusal(answer);
  if (error.status === 401 && error.kind === "login") whenLoginNeeded();
  throw error;
}

async function ask<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const answer = await send(method, path, body);
  const text = await answer.text();
  return (text ? JSON.parse(text) : {}) as T;
}

/** The query of a path, without what is undefined.  {a: 1, b: undefined} -> "?a=1" */
export function query(fields: Record<string, string | number | boolean | undefined>): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => [name, String(value)]);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

const at = (id: string) => `/threads/${encodeURIComponent(id)}`;

/** Every call of the contract, by its name. */
export const api = {
  state: () => ask<State>("GET", "/state"),
  login: (password: string) => ask<unknown>("POST", "/login", { password }),
  logout: () => ask<unknown>("POST", "/logout", {}),

  threads: (want: { archived?: boolean; q?: string; limit?: number; skip?: number } = {}) =>
    ask<{ threads: Thread[]; hits?: Hit[] }>(
      "GET",
      `/threads${query({ ...want, archived: want.archived ? 1 : 0 })}`,
    ),
  thread: (id: string) => ask<Thread>("GET", at(id)),
  newThread: (model?: string) => ask<Thread>("POST", "/threads", model ? { model } : {}),
  changeThread: (id: string, change: Partial<Pick<Thread, "title" | "archived" | "auto" | "model">>) =>
    ask<Thread>("PATCH", at(id), change),
  deleteThread: (id: string) => ask<unknown>("DELETE", at(id)),
  branch: (id: string, order: number, title?: string) =>
    ask<Thread>("POST", `${at(id)}/branch`, title ? { order, title } : { order }),

  rows: (id: string, want: { before?: number; limit?: number; point?: number } = {}) =>
    ask<Rows>("GET", `${at(id)}/rows${query(want)}`),
  why: (id: string, order: number) => ask<Why>("GET", `${at(id)}/rows/${order}/why`),
  original: async (id: string, ref: string) =>
    (await send("GET", `${at(id)}/original/${encodeURIComponent(ref)}`)).text(),
  context: (id: string) => ask<Context>("GET", `${at(id)}/context`),

  turn: (id: string, saying: Saying) => ask<unknown>("POST", `${at(id)}/turn`, saying),
  stop: (id: string) => ask<unknown>("POST", `${at(id)}/stop`, {}),
  regenerate: (id: string) => ask<unknown>("POST", `${at(id)}/regenerate`, {}),
  retry: (id: string) => ask<unknown>("POST", `${at(id)}/retry`, {}),
  compact: (id: string, focus = "") => ask<unknown>("POST", `${at(id)}/compact`, { focus }),
  undo: (id: string) => ask<unknown>("POST", `${at(id)}/undo`, {}),
  answer: (id: string, question: string, answer: Answer) =>
    ask<unknown>("POST", `${at(id)}/answer`, { id: question, answer }),

  changes: (id: string) => ask<FileChange[]>("GET", `${at(id)}/changes`),
  restore: (id: string, change: string, force: boolean) =>
    ask<{ path: string; removed: boolean }>("POST", `${at(id)}/changes/${encodeURIComponent(change)}/restore`, { force }),

  pins: (id: string) => ask<Pin[]>("GET", `${at(id)}/pins`),
  pin: (id: string, what: { order: number } | { text: string }) =>
    ask<{ id: string }>("POST", `${at(id)}/pins`, what),
  unpin: (id: string, pin: string) => ask<unknown>("DELETE", `${at(id)}/pins/${encodeURIComponent(pin)}`),
  recall: (id: string, words: string) => ask<Recalled>("POST", `${at(id)}/recall`, { words }),

  settings: () => ask<Settings>("GET", "/settings"),
  saveSettings: (settings: Settings) => ask<Settings>("PUT", "/settings", settings),
  sources: () => ask<Source[]>("GET", "/sources"),
  addSource: (source: NewSource) => ask<Source>("POST", "/sources", source),
  deleteSource: (name: string) => ask<unknown>("DELETE", `/sources/${encodeURIComponent(name)}`),
  usage: (days = 30) => ask<Usage>("GET", `/usage${query({ days })}`),
};

const FIRST_WAIT = 500; // milliseconds before a lost stream is opened again; doubles up to LONGEST_WAIT
const LONGEST_WAIT = 15_000;

/** What a listener is told about its connection. */
export type Connection = "open" | "lost";

/**
 * Listen to a stream of server-sent events until the returned function is called.
 *
 * EventSource reconnects by itself (with Last-Event-ID) after a dropped connection, but gives up
 * for good on an error status; then a new one is opened, ever more slowly, from the last event heard.
 */
export function listen<T>(path: string, hear: (event: T) => void, connection: (now: Connection) => void): () => void {
  let source: EventSource;
  let wait = FIRST_WAIT;
  let last = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    source = new EventSource(`/everlong/api${path}${query({ last })}`);
    source.onopen = () => {
      wait = FIRST_WAIT;
      connection("open");
    };
    source.onmessage = (message) => {
      last = message.lastEventId;
      hear(JSON.parse(message.data as string) as T);
    };
    source.onerror = () => {
      connection("lost");
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, LONGEST_WAIT);
    };
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/** Listen to one thread. */
export const listenThread = (id: string, hear: (event: ThreadEvent) => void, connection: (now: Connection) => void) =>
  listen<ThreadEvent>(`${at(id)}/events`, hear, connection);

/** Listen to the requests that pass through the gateway. */
export const listenLive = (hear: (event: LiveRequest) => void, connection: (now: Connection) => void) =>
  listen<LiveRequest>("/live", hear, connection);
