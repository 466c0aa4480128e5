/** What was done to a message, in words: the engine names its steps, the reader gets sentences. Pure. */
import type { Edit, Sent } from "../api";
import type { Key } from "../words";

const STEPS: Record<string, Key> = {
  by_need: "why.step.by_need",
  newest: "why.step.newest",
  call_arguments: "why.step.call_arguments",
  duplicates: "why.step.duplicates",
  emergency: "why.step.emergency",
  hard_trim: "why.step.hard_trim",
  images: "why.step.images",
  json_tables: "why.step.json_tables",
  long_messages: "why.step.long_messages",
  long_task: "why.step.long_task",
  pairs: "why.step.pairs",
  priority: "why.step.priority",
  reasoning: "why.step.reasoning",
  repair: "why.step.repair",
  repeated_lines: "why.step.repeated_lines",
  soft_trim: "why.step.soft_trim",
  superseded: "why.step.superseded",
  terminal: "why.step.terminal",
  tool_rounds: "why.step.tool_rounds",
};
const CHANGES: Record<string, Key> = {
  shorten: "why.change.shorten",
  drop: "why.change.drop",
  insert: "why.change.insert",
  repair: "why.change.repair",
};
const SENT: Record<Sent, Key> = {
  whole: "why.sent.whole",
  shortened: "why.sent.shortened",
  "left out": "why.sent.left_out",
  covered: "why.sent.covered",
  "": "why.sent.not_yet",
};

/** What became of a message as a whole. */
export function whatWasSent(sent: Sent, pinned: boolean): Key {
  return pinned && sent === "whole" ? "why.sent.pinned" : SENT[sent];
}

/** The sentence for one change. */
export function reasonOf(edit: Pick<Edit, "step" | "action">): Key {
  return STEPS[edit.step] ?? CHANGES[edit.action] ?? "why.change.shorten";
}

/** Why, each reason once.  two edits of one step -> one sentence with the tokens of both */
export function reasons(edits: Edit[]): { key: Key; before: number; after: number }[] {
  const told = new Map<Key, { key: Key; before: number; after: number }>();
  for (const edit of edits) {
    const key = reasonOf(edit);
    const so_far = told.get(key) ?? { key, before: 0, after: 0 };
    told.set(key, { key, before: so_far.before + edit.before, after: so_far.after + edit.after });
  }
  return [...told.values()];
}
