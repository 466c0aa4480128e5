/** The types of the contract between page and server: requests, answers and stream events. */

export type Sent = "whole" | "shortened" | "left out" | "covered" | "";
export type Auto = "follow" | "on" | "off";
/** The name of a table of words; "" leaves it to the browser. */
export type Language = string;
export type Role = "system" | "user" | "assistant" | "tool";
export type RowKind = "message" | "summary" | "cut" | "recalled" | "undo" | "gone";
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
  /** The longest answer, if a list has it. */
  output: number | null;
  /** Dollars for a million tokens, if a list has them. */
  input_price: number | null;
  output_price: number | null;
}

/** What a person set for the answers of a thread; null means not set, as does "" for the instructions. */
export interface Options {
  system: string;
  temperature: number | null;
  top_p: number | null;
  max_tokens: number | null;
  tools: boolean | null;
}

/** The options of a thread; `instructed` if it begins with instructions of its own, which are sent too. */
export interface ThreadOptions extends Options {
  instructed: boolean;
}

/** A preset of options for new threads. At most one is the default. */
export interface Assistant {
  id: string;
  name: string;
  icon: string;
  model: string;
  options: Options;
  default: boolean;
}

export interface Prompt {
  id: string;
  title: string;
  text: string;
}

/** What a person keeps for all threads. Models are ids; the newest of `recent` comes first. */
export interface Kept {
  assistants: Assistant[];
  prompts: Prompt[];
  favourites: string[];
  recent: string[];
}

/** What tools may do without a question: patterns in this folder, and what was allowed in threads. */
export interface Permissions {
  folder: string;
  always: string[];
  threads: { thread: string; title: string; grants: string[] }[];
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

/** Measured in percent: the cost of a threshold relative to sending everything, and what it keeps of what is needed. */
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
  /** Whether it uses the threshold; others have limits of their own. */
  by_tokens: boolean;
  starts: Due[];
}

/** Tokens: from `soon` on, a summary starts after an answer; above `at`, a request is compacted before it is sent. */
export interface Due {
  soon: number;
  at: number;
}

export interface State {
  version: string;
  language: Language;
  /** No model but the witness is set up yet. */
  first_run: boolean;
  /** The name of the witness's source; "" if this server has none. */
  witness?: string;
  /** A page without threads opens on the sample. */
  opens_sample?: boolean;
  /** The server needs a login, so the reader can sign out. */
  login?: boolean;
  /** Who is signed in; "" in an app without accounts. */
  user?: string;
  /** Whether tools may be switched on here. */
  tools_allowed?: boolean;
  /** The gateway has keys: its requests are shown to the key that made them, not to the page. */
  live_by_key?: boolean;
  /** Whether there are keys of a gateway's clients to manage. */
  keys?: boolean;
  models: Model[];
  default_model: string;
  /** For each step of the threshold, with the default model, else the first; empty if its window is unknown. */
  outlook: Outlook[];
  presets: Preset[];
  tools: boolean;
  settings: Settings;
}

/** The language model on this machine; `done` and `size` are bytes of its download. */
export interface LocalModel {
  state: "none" | "off" | "fetching" | "starting" | "on" | "failed";
  done: number;
  size: number;
  reason: string;
}

export interface Thread {
  id: string;
  title: string;
  /** The language of a sample thread; "" for any other. */
  sample?: string;
  created: string | number;
  updated: string | number;
  archived: boolean;
  messages: number;
  points: number;
  model: string;
  auto: Auto;
  running: boolean;
  branch_of: string | null;
  /** The folder that it is kept in; "" if in none. */
  folder: string;
  pinned: boolean;
}

/** A folder; its threads are included if it was requested as open. */
export interface Folder {
  name: string;
  count: number;
  threads: Thread[];
}

/** The threads as the sidebar shows them. */
export interface Shelf {
  pinned: Thread[];
  folders: Folder[];
  /** Those that are neither pinned nor in a folder. */
  threads: Thread[];
  total: number;
}

/** The fields of a thread that can be changed. */
export type ThreadChange = Partial<Pick<Thread, "title" | "archived" | "auto" | "model" | "folder" | "pinned">>;

/** Where a search looks. */
export type SearchIn = "" | "titles" | "messages";

/** A thread in the tree of its branches: where it left its parent, and its first words there. */
export interface BranchNode {
  id: string;
  title: string;
  parent: string | null;
  order: number;
  first: number | null;
  words: string;
  /** The first words of the message from which it continues. */
  after: string;
  role: Role | "";
  messages: number;
  updated: string;
  archived: boolean;
  listed: boolean;
}

/** A report of an import: its progress, or its end. */
export interface ImportEvent {
  type: "progress" | "done" | "failed";
  new: number;
  /** How many versions of conversations were imported. */
  versions: number;
  grown: number;
  known: number;
  empty: number;
  messages: number;
  /** At the end: how many pieces could not be read and why, the imported threads, and the programs they are from. */
  unread?: number;
  notes?: string[];
  threads?: string[];
  formats?: string[];
  message?: string;
}

export interface Hit {
  thread: string;
  title: string;
  archived: boolean;
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
  /** Of a compaction, as they were when it happened; null if unknown. The next three add up to `messages`. */
  messages: number | null;
  kept: number | null;
  shortened: number | null;
  left_out: number | null;
  /** The size of the whole request. */
  tokens_before: number | null;
  tokens_after: number | null;
  /** Who wrote a summary. */
  author?: "model" | "rules" | "";
  /** A summary that is kept for the next compaction; it does not change what is sent. */
  waits?: boolean;
  stands: boolean;
  /** What the compaction was asked to focus on. */
  focus?: string;
  /** The text was too long to send with the rows; the whole is at `ref`. */
  cut?: boolean;
  ref?: string | null;
  /** The model that gave the answer; "" if unknown. */
  model?: string;
  /** Why an answer is incomplete; "" if it is complete. */
  ending?: Ending;
  /** The versions of the conversation from here on: one thread each, and the index of this one. */
  versions?: { at: number; threads: string[] } | null;
}

export type Ending = "" | "stopped" | "broken off" | "length" | "empty";

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

/** A message that a compaction left, as it is sent; `ours`: a summary or excerpts, not a message of the thread. */
export interface KeptMessage {
  role: Role;
  ours: boolean;
  text: string;
}

export interface Context {
  model: string;
  /** The tokens that are assumed for trimming while the window is unknown; null if it is known. */
  assumed: number | null;
  tokens: number;
  limit: number;
  /** From `soon` on, a summary starts after an answer; above `high`, a request is compacted. null: not by tokens. */
  soon: number | null;
  high: number | null;
  /** What the next message would cause now. */
  next: "nothing" | "summary" | "compaction" | "trim" | "rules";
  /** The last compaction was undone: only unavoidable ones are made. */
  undone: boolean;
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

export interface FileSection {
  /** Which page, slide, sheet or lines. */
  label: string;
  text: string;
  tokens: number;
}

/** The text of a file that is about to be attached. `cut`: it was too long, this is its beginning. */
export interface FileText {
  kind: "text" | "pdf" | "docx" | "xlsx" | "pptx";
  cut: boolean;
  tokens: number;
  sections: FileSection[];
}

export interface Saying {
  /** The name of the message: if it is sent again under the same name, it is stored once. */
  id?: string;
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
  /** Its model for the summaries and titles of its conversations; "" if none is set. */
  fast_model: string;
  /** False for a source that the server was started with; it cannot be changed here. */
  added: boolean;
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
  calls: number;
  prompt: number;
  cached: number;
  output: number;
  cost: number;
  /** The part of the calls and of their cost that was for summaries. */
  summary_calls: number;
  summary_cost: number;
  /** What compaction saved, less the cost of summaries; may be negative. */
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
    saved_tokens: number;
    saved_cost: number;
  }[];
  /** A last row without an id sums up the threads beyond the limit and the removed ones. */
  threads: {
    id: string;
    title: string;
    calls: number;
    prompt: number;
    cost: number;
    summary_calls: number;
    summary_cost: number;
    saved_tokens: number;
    saved_cost: number;
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
  /** What "always" would cover; empty if there is no pattern for it. */
  pattern: string;
  /** How many lines are hidden or shortened. */
  hidden: number;
  answers: Answer[];
}

/** A change of a file by a call. The file can be restored if `kept`. */
export interface FileChange {
  id: string;
  call: string;
  tool: string;
  path: string;
  time: string;
  new: boolean;
  kept: boolean;
}

/** How a compaction ended. `reason` is a word of `outcome.reason`; `by_rules`: rules wrote what no model could. */
export interface CompactionOutcome {
  model: string;
  /** What its server said, unchanged; "" if nothing. */
  detail: string;
  by_rules: boolean;
  messages: number | null;
  tokens_before: number | null;
  tokens_after: number | null;
}

export type CompactingState = "started" | "words" | "done" | "failed" | "skipped";

/** Why there is no answer. The page has the words for each kind. */
export interface Failure {
  kind: string;
  /** The technical text, shown as details. */
  details: string;
  /** What can be done about it, the best first: retry, wait, fix_key, edit_source, add_version, choose_model. */
  actions: string[];
  status: number | null;
  /** The seconds that the provider asks to wait. */
  after: number | null;
  source: string;
  model: string;
  address: string;
  /** An address that would probably work. */
  suggested: string;
  /** The source can be changed here. */
  editable: boolean;
}

/** The events of a thread's stream. */
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
  | ({ type: "compacting"; state: CompactingState; text: string; reason: string } & Partial<CompactionOutcome>)
  | { type: "failed"; failure: Failure }
  | { type: "ended"; reason: string; steps: number }
  | { type: "moved"; thread: string }
  | { type: "running"; running: boolean }
  /** The question was answered, here or on another page. */
  | { type: "answered"; id: string }
  /** Messages were deleted, permanently if `erased`, or restored: here or on another page. */
  | { type: "removed"; orders: number[]; erased: boolean }
  | { type: "restored"; orders: number[] }
  /** The page was away too long: the answer so far is sent again, and rows must be loaded again. */
  | { type: "reset" };
