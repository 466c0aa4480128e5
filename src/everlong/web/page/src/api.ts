/**
 * The typed client of the server's API.
 *
 * Owns how requests are made; keeps no state (see src/state). Streams are in src/stream, the types in contract.ts.
 */
import type {
  Answer,
  Assistant,
  BranchNode,
  Context,
  FileChange,
  FileText,
  Hit,
  ImportEvent,
  Kept,
  KeptMessage,
  LocalModel,
  NewSource,
  Options,
  Permissions,
  Pin,
  Prompt,
  Recalled,
  Rows,
  Saying,
  SearchIn,
  Settings,
  Shelf,
  Source,
  State,
  Thread,
  ThreadChange,
  ThreadOptions,
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
/** How a reader gets in: with the password, at the sign-in provider, or through the proxy. */
export type Entry = "login" | "sign_in" | "proxy";
const ENTRIES: readonly string[] = ["login", "sign_in", "proxy"];
let whenLoginNeeded: (entry: Entry) => void = () => {};

/** Set what happens when the server asks for a login. */
export function onLoginNeeded(act: (entry: Entry) => void): void {
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
    // A proxy may answer with a page of its own; then only the status line is known.
  }
  return new ApiError(answer.status, kind, message);
}

async function send(method: Method, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { "x-everlong": "page" };
  const file = body instanceof Blob;
  if (body !== undefined) headers["content-type"] = file ? "application/octet-stream" : "application/json";
  let answer: Response;
  try {
    answer = await fetch(`/everlong/api${path}`, {
      method,
      headers,
      body: body === undefined || file ? (body as Blob | undefined) : JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, "offline", "offline");
  }
  if (answer.ok) return answer;
  const error = await refusal(answer);
  if (error.status === 401 && ENTRIES.includes(error.kind)) whenLoginNeeded(error.kind as Entry);
  throw error;
}

/** Send a file unchanged. */
async function upload<T>(path: string, file: Blob): Promise<T> {
  const answer = await send("POST", path, file);
  return (await answer.json()) as T;
}

async function ask<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const answer = await send(method, path, body);
  const text = await answer.text();
  return (text ? JSON.parse(text) : {}) as T;
}

/** The query of a path, without undefined and empty fields.  {a: 1, b: undefined} -> "?a=1" */
export function query(fields: Record<string, string | number | boolean | undefined>): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => [name, String(value)]);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** Which threads to list; in a search, `archived` 0 or 1 leaves the others out. */
export interface ThreadsWanted {
  archived?: 0 | 1;
  q?: string;
  in?: SearchIn;
  folder?: string;
  loose?: 1;
  limit?: number;
  skip?: number;
}

const at = (id: string) => `/threads/${encodeURIComponent(id)}`;

/** Every call of the contract, by its name. */
export const api = {
  state: () => ask<State>("GET", "/state"),
  login: (password: string) => ask<unknown>("POST", "/login", { password }),
  logout: () => ask<unknown>("POST", "/logout", {}),
  /** Ask where to sign in; with the code and state from the provider, sign in. */
  signIn: (given: { code?: string; state?: string } = {}) => ask<{ to?: string }>("POST", "/sign-in", given),

  threads: (want: ThreadsWanted = {}) => ask<{ threads: Thread[]; hits?: Hit[] }>("GET", `/threads${query({ ...want })}`),
  shelf: (open: string[], limit: number) =>
    ask<Shelf>("GET", `/threads${query({ shelf: 1, limit })}${open.map((name) => `&open=${encodeURIComponent(name)}`).join("")}`),
  addFolder: (name: string) => ask<{ name: string }>("POST", "/folders", { name }),
  renameFolder: (name: string, to: string) => ask<{ name: string }>("PATCH", "/folders", { name, new: to }),
  deleteFolder: (name: string) => ask<unknown>("DELETE", `/folders${query({ name })}`),
  changeMany: (threads: string[], change: { archived?: boolean; pinned?: boolean; folder?: string; delete?: boolean }) =>
    ask<{ changed: number }>("POST", "/chosen", { threads, ...change }),
  family: (id: string) => ask<{ root: string; nodes: BranchNode[] }>("GET", `${at(id)}/family`),
  thread: (id: string) => ask<Thread>("GET", at(id)),
  newThread: (want: { model?: string; assistant?: string; options?: Partial<Options> } = {}) =>
    ask<Thread>("POST", "/threads", want),
  options: (id: string) => ask<ThreadOptions>("GET", `${at(id)}/options`),
  setOptions: (id: string, options: Partial<Options>) => ask<ThreadOptions>("PUT", `${at(id)}/options`, options),
  changeThread: (id: string, change: ThreadChange) =>
    ask<Thread>("PATCH", at(id), change),
  deleteThread: (id: string) => ask<unknown>("DELETE", at(id)),
  branch: (id: string, order: number, title?: string) =>
    ask<Thread>("POST", `${at(id)}/branch`, title ? { order, title } : { order }),

  rows: (id: string, want: { before?: number; limit?: number; point?: number } = {}) =>
    ask<Rows>("GET", `${at(id)}/rows${query(want)}`),
  /** Delete a message; with `erase`, permanently and everywhere. -> the rows that were deleted */
  deleteRow: (id: string, order: number, erase = false) =>
    ask<{ orders: number[] }>("DELETE", `${at(id)}/rows/${order}${query({ erase: erase ? 1 : undefined })}`),
  restoreRow: (id: string, order: number) => ask<{ orders: number[] }>("POST", `${at(id)}/rows/${order}/restore`, {}),
  why: (id: string, order: number) => ask<Why>("GET", `${at(id)}/rows/${order}/why`),
  keptMessages: (id: string, order: number) => ask<{ kept: KeptMessage[] }>("GET", `${at(id)}/rows/${order}/kept`),
  original: async (id: string, ref: string) =>
    (await send("GET", `${at(id)}/original/${encodeURIComponent(ref)}`)).text(),
  context: (id: string) => ask<Context>("GET", `${at(id)}/context`),

  turn: (id: string, saying: Saying) => ask<unknown>("POST", `${at(id)}/turn`, saying),
  stop: (id: string) => ask<unknown>("POST", `${at(id)}/stop`, {}),
  /** Edit a message: make a version of the conversation in which it replaces the old one. */
  sayInstead: (id: string, order: number, saying: Saying) =>
    ask<{ thread: string }>("POST", `${at(id)}/turn`, { ...saying, instead_of: order }),
  goOn: (id: string) => ask<unknown>("POST", `${at(id)}/continue`, {}),
  /** Answer the message before that row again; the old answer stays as a version. */
  regenerate: (id: string, order: number, model?: string) =>
    ask<Thread>("POST", `${at(id)}/regenerate`, { order, model }),
  showVersion: (id: string) => ask<Thread>("POST", `${at(id)}/show`, {}),
  retry: (id: string) => ask<{ thread: string }>("POST", `${at(id)}/retry`, {}),
  compact: (id: string, focus = "") => ask<unknown>("POST", `${at(id)}/compact`, { focus }),
  cancelCompaction: (id: string) => ask<unknown>("POST", `${at(id)}/compact/cancel`, {}),
  undo: (id: string) => ask<unknown>("POST", `${at(id)}/undo`, {}),
  answer: (id: string, question: string, answer: Answer) =>
    ask<unknown>("POST", `${at(id)}/answer`, { id: question, answer }),

  changes: (id: string) => ask<FileChange[]>("GET", `${at(id)}/changes`),
  diff: (id: string, change: string) =>
    ask<{ diff: string | null; cut: boolean }>("GET", `${at(id)}/changes/${encodeURIComponent(change)}/diff`),
  restore: (id: string, change: string, force: boolean) =>
    ask<{ path: string; removed: boolean }>("POST", `${at(id)}/changes/${encodeURIComponent(change)}/restore`, { force }),

  pins: (id: string) => ask<Pin[]>("GET", `${at(id)}/pins`),
  pin: (id: string, what: { order: number } | { text: string }) =>
    ask<{ id: string }>("POST", `${at(id)}/pins`, what),
  unpin: (id: string, pin: string) => ask<unknown>("DELETE", `${at(id)}/pins/${encodeURIComponent(pin)}`),
  recall: (id: string, words: string) => ask<Recalled>("POST", `${at(id)}/recall`, { words }),

  kept: () => ask<Kept>("GET", "/kept"),
  keepAssistant: (assistant: Partial<Assistant>) =>
    assistant.id
      ? ask<Assistant>("PUT", `/assistants/${encodeURIComponent(assistant.id)}`, assistant)
      : ask<Assistant>("POST", "/assistants", assistant),
  deleteAssistant: (id: string) => ask<unknown>("DELETE", `/assistants/${encodeURIComponent(id)}`),
  keepPrompt: (prompt: Partial<Prompt>) =>
    prompt.id
      ? ask<Prompt>("PUT", `/prompts/${encodeURIComponent(prompt.id)}`, prompt)
      : ask<Prompt>("POST", "/prompts", prompt),
  deletePrompt: (id: string) => ask<unknown>("DELETE", `/prompts/${encodeURIComponent(id)}`),
  importPrompts: (prompts: Pick<Prompt, "title" | "text">[]) =>
    ask<{ added: number }>("POST", "/prompts/import", { prompts }),
  mark: (model: string, on: boolean) => ask<{ favourites: string[] }>("PUT", "/favourites", { model, on }),
  permissions: () => ask<Permissions>("GET", "/permissions"),
  revoke: (what: { pattern: string } | { thread: string; grant: string }) =>
    ask<Permissions>("POST", "/permissions/revoke", what),
  /** The text of a file with its tokens; for a picture, only the tokens. */
  readFile: (file: Blob, model: string) => upload<FileText>(`/attachments${query({ model })}`, file),

  settings: () => ask<Settings>("GET", "/settings"),
  saveSettings: (settings: Settings) => ask<Settings>("PUT", "/settings", settings),
  sources: () => ask<Source[]>("GET", "/sources"),
  addSource: (source: NewSource) => ask<Source>("POST", "/sources", source),
  changeSource: (name: string, change: Partial<Omit<NewSource, "name">>) =>
    ask<Source>("PATCH", `/sources/${encodeURIComponent(name)}`, change),
  deleteSource: (name: string) => ask<unknown>("DELETE", `/sources/${encodeURIComponent(name)}`),
  sample: (language: string) => ask<{ thread: string }>("POST", "/sample", { language }),
  local: () => ask<LocalModel>("GET", "/local"),
  startLocal: () => ask<LocalModel>("POST", "/local", {}),
  cancelLocal: () => ask<LocalModel>("DELETE", "/local"),
  usage: (days = 30) => ask<Usage>("GET", `/usage${query({ days })}`),
};

/** The address of a thread's file, or of an archive of several threads (of all, if none is named). */
export function exportAddress(threads: string[] | null, format: string, language: string): string {
  const base = "/everlong/api";
  if (threads?.length === 1) return `${base}${at(threads[0])}/export${query({ format, language })}`;
  return `${base}/export${query({ format, language })}${(threads ?? []).map((id) => `&thread=${encodeURIComponent(id)}`).join("")}`;
}

/** Import a file and report its progress, one event per line. Throws ApiError if the whole file is refused. */
export async function importFile(file: File, hear: (event: ImportEvent) => void): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch(`/everlong/api/import${query({ name: file.name })}`, {
      method: "POST",
      headers: { "x-everlong": "page", "content-type": "application/octet-stream" },
      body: file,
    });
  } catch {
    throw new ApiError(0, "offline", "offline");
  }
  if (!answer.ok || !answer.body) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) hear(JSON.parse(line) as ImportEvent);
    if (done) return;
  }
}
