/** The shapes of the contract between page and server: what is asked, what is answered, what is told in streams. */

export type Sent = "whole" | "shortened" | "left out" | "covered" | "";
export type Auto = "follow" | "on" | "off";
/** The name of a table of words; "" leaves it to the browser. */
export type Language = string;
export type Role = "system" | "user" | "assistant" | "tool";
export type RowKind = "message" | "summary" | "cut" | "recalled" | "undo";
export type Certainty = "reported" | "counted" | "estimated";
export type Part =
  | "system"
  | "standing"
  | "tools"
  | "pinned"
  | "summary"
  | "recalled"
  | "user"
  | "assistant"
  | "results";

export interface Model {
  id: string;
  name: string;
  source: string;
  window: number | null;
  window_source: string;
  known: boolean;
}

export interface Settings {
  auto: boolean;
  threshold: number;
  summary_model: string;
  naming_model: string;
  preset: string;
  windows: Record<string, number>;
  language: Language;
  tools: boolean;
  retention_days: number | null;
}

/** What a threshold costs of sending everything, and keeps of what is needed again, as measured; all in percent. */
export interface Outlook {
  threshold: number;
  cost: number;
  kept: number;
}

/**
 * A preset that can be chosen, and whether the outlook was measured with it. `starts` are the tokens at which it compacts
 * in a new thread with the model in use, one for every step of the threshold; none if its window is unknown.
 */
export interface Preset {
  name: string;
  measured: boolean;
  starts: number[];
}

export interface State {
  version: string;
  language: Language;
  first_run: boolean;
  /** The server asks for a password: one can sign out. */
  login?: boolean;
  /** The gateway has keys: its requests are told to the key that made them, and not to the page. */
  live_by_key?: boolean;
  models: Model[];
  default_model: string;
  /** For each step of the threshold, with the default model, else the first; empty where its window is not known. */
  outlook: Outlook[];
  presets: Preset[];
  tools: boolean;
  settings: Settings;
}

export interface Thread {
  id: string;
  title: string;
  created: string | number;
  updated: string | number;
  archived: boolean;
  messages: number;
  points: number;
  model: string;
  auto: Auto;
  running: boolean;
  branch_of: string | null;
}

export interface Hit {
  thread: string;
  title: string;
  order: number;
  text: string;
}

export interface Call {
  id: string;
  name: string;
  arguments: unknown;
}

export interface Result {
  call: string;
  name: string;
  text: string;
  cut: boolean;
  ref: string | null;
  failed: boolean;
  images?: string[];
  seconds?: number;
}

export interface Row {
  order: number;
  id: string;
  time: string | number;
  kind: RowKind;
  role: Role;
  text: string;
  thinking: string;
  images: string[];
  calls: Call[];
  results: Result[];
  pinned: boolean;
  sent: Sent;
  covers: [number, number] | null;
  reason: string;
  tokens_before: number;
  tokens_after: number;
  stands: boolean;
  /** What a compaction was asked to keep in view. */
  focus?: string;
  /** The text was too long to send with the rows; the whole is at `ref`. */
  cut?: boolean;
  ref?: string | null;
}

export interface Rows {
  rows: Row[];
  first: boolean;
  total: number;
}

export interface Edit {
  action: string;
  step: string;
  why: string;
  before: number;
  after: number;
  ref: string | null;
}

export interface Why {
  sent: Sent;
  edits: Edit[];
  as_sent: string | null;
  original: string;
}

export interface Context {
  model: string;
  /** The tokens that are assumed for trimming while nobody knows the window; null if it is known. */
  assumed: number | null;
  tokens: number;
  limit: number;
  high: number;
  window: number | null;
  window_source: string;
  known: boolean;
  certainty: Certainty;
  parts: Record<Part, number>;
  messages: number;
  covered: number;
  auto: Auto;
  auto_on: boolean;
  compacting: boolean;
  threshold: number;
  can_undo: boolean;
}

export interface Pin {
  id: string;
  order: number | null;
  text: string;
}

export interface Recalled {
  hits: { order: number; role: Role; text: string; score: number }[];
  original: string | null;
}

export interface Picture {
  name: string;
  media_type: string;
  data: string;
}

export interface TextFile {
  name: string;
  text: string;
}

export interface Saying {
  text: string;
  images: Picture[];
  files: TextFile[];
}

export interface Source {
  name: string;
  url: string;
  format: string;
  has_key: boolean;
  models: number;
  /** The model that it recommends for summaries and titles of the conversations held there; "" if none. */
  fast_model: string;
}

export interface NewSource {
  name?: string;
  url: string;
  key?: string;
  format?: string;
  fast_model?: string;
}

export interface UsageDay {
  day: string;
  prompt: number;
  cached: number;
  output: number;
  cost: number;
  /** The part of the calls and of their cost that summaries took. */
  summary_calls: number;
  summary_cost: number;
  saved_tokens: number;
  saved_cost: number;
  compactions: number;
  overflows: number;
  recovered: number;
}

export interface Usage {
  days: UsageDay[];
  models: {
    model: string;
    calls: number;
    prompt: number;
    cached: number;
    output: number;
    cost: number;
    summary_calls: number;
    summary_cost: number;
  }[];
  threads: {
    id: string;
    title: string;
    calls: number;
    prompt: number;
    cost: number;
    summary_calls: number;
    summary_cost: number;
    compactions: number;
  }[];
  success: {
    overflow_errors: number;
    recovered: number;
    compactions: number;
    threads: number;
    threads_by_hand: number;
    median_length: number;
    longest: number;
  };
}

export interface LiveRequest {
  id: string;
  time: string | number;
  model: string;
  upstream: string;
  status: number;
  tokens: { before: number; after: number; saved: number };
  edits: unknown[];
  recovered: boolean;
  added_ms: number;
  seconds: number;
  error: string | null;
}

export type Answer = "no" | "once" | "thread" | "always";

/** An action of a tool that waits for an answer. Its texts are made visible by the server: nothing in them is hidden. */
export interface Ask {
  id: string;
  tool: string;
  kind: "file" | "command" | "network" | "tool";
  subject: string;
  /** A unified diff, the command, the address, or the arguments. */
  details: string;
  hint: string;
  /** What "always" would cover; empty where it cannot be said. */
  pattern: string;
  /** How many lines are not shown, or not whole. */
  hidden: number;
  answers: Answer[];
}

/** A file that a call changed and that can be made what it was before. */
export interface FileChange {
  id: string;
  call: string;
  tool: string;
  path: string;
  time: string;
  new: boolean;
  kept: boolean;
}

export type CompactingState = "started" | "words" | "done" | "failed" | "skipped";

/** What a thread's stream of events may tell. */
export type ThreadEvent =
  | { type: "row"; row: Row }
  | { type: "said"; text: string }
  | { type: "thought"; text: string }
  | { type: "call"; id: string; name: string; arguments: unknown }
  | { type: "result"; id: string; name: string; text: string; failed: boolean; seconds: number }
  | { type: "restarted"; reason: string }
  | ({ type: "ask" } & Ask)
  | { type: "refused"; id: string; name: string; reason: string; answered: boolean }
  | { type: "context"; context: Context }
  | { type: "title"; title: string }
  | { type: "compacting"; state: CompactingState; text: string; reason: string }
  | { type: "failed"; message: string; retry: boolean }
  | { type: "ended"; reason: string; steps: number }
  | { type: "moved"; thread: string }
  | { type: "running"; running: boolean }
  /** The question was answered, here or on another page. */
  | { type: "answered"; id: string }
  /** The page was away too long: what is being given is told anew, rows must be read again. */
  | { type: "reset" };
