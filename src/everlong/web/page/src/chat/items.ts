/** The items of the chat: stored rows, the growing answer, messages that are being sent. Pure. */
import type { Failure, Row, Saying } from "../api";
import type { Unsent } from "../kept/unsent.svelte";
import type { Piece } from "../state/live";

export type ChatItem =
  | { key: string; kind: "row"; row: Row }
  /** `growing`: more of it may come; otherwise it is about to become a row. */
  | { key: string; kind: "piece"; piece: Piece; growing: boolean }
  | { key: string; kind: "waiting"; saying: Saying }
  | { key: string; kind: "unsent"; message: Unsent }
  | { key: string; kind: "failure"; failure: Failure }
  | { key: string; kind: "dots" };

interface Now {
  pieces: Piece[];
  waiting: { id: string; saying: Saying }[];
  unsent: Unsent[];
  running: boolean;
  /** A tool is running; its card shows that. */
  calling: boolean;
  /** Why the last message got no answer. */
  failure?: Failure | null;
}

export function rowKey(order: number): string {
  return `row-${order}`;
}

/** The stored rows. Separate from `live`, so that a word of an answer does not touch five thousand rows. */
export function standing(rows: Row[]): ChatItem[] {
  return rows.map((row) => ({ key: rowKey(row.order), kind: "row", row }));
}

/** The items after the rows; dots stand for an answer without a first word yet. */
export function live({ pieces, waiting, unsent, running, calling, failure }: Now): ChatItem[] {
  const items: ChatItem[] = pieces.map((piece, index) => ({
    key: `piece-${piece.id}`,
    kind: "piece",
    piece,
    growing: running && index === pieces.length - 1,
  }));
  for (const one of waiting) items.push({ key: `waiting-${one.id}`, kind: "waiting", saying: one.saying });
  if (failure && !running) items.push({ key: "failure", kind: "failure", failure });
  for (const message of unsent) items.push({ key: `unsent-${message.id}`, kind: "unsent", message });
  const last = pieces.at(-1);
  if (running && !calling && (!last || last.calls.length > 0)) items.push({ key: "dots", kind: "dots" });
  return items;
}

const LETTERS_IN_A_LINE = 80;
const LINE = 25; // px
const TALLEST_GUESS = 1_200;

const guesses = new WeakMap<Row, number>();

/** The assumed height in px, until the item is drawn. */
export function guessHeight(item: ChatItem): number {
  if (item.kind !== "row") return 60;
  let guess = guesses.get(item.row);
  if (guess === undefined) {
    guess = rowHeight(item.row);
    guesses.set(item.row, guess);
  }
  return guess;
}

function rowHeight(row: Row): number {
  if (row.kind === "undo" || row.kind === "gone") return 44;
  if (row.kind !== "message") return 64;
  const lines = Math.ceil(row.text.length / LETTERS_IN_A_LINE) + (row.text.match(/\n/g)?.length ?? 0) * 0.7;
  return Math.min(60 + lines * LINE + row.calls.length * 48, TALLEST_GUESS);
}
