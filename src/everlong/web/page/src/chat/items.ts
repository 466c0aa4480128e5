/** What the chat lists: rows that stand, the answer that grows, words on their way. Pure. */
import type { Row, Saying } from "../api";
import type { Piece } from "../state/live";

export type ChatItem =
  | { key: string; kind: "row"; row: Row }
  /** `growing`: more of it may come; otherwise it was stopped and does not stand in the thread. */
  | { key: string; kind: "piece"; piece: Piece; growing: boolean }
  | { key: string; kind: "waiting"; saying: Saying }
  | { key: string; kind: "dots" };

interface Now {
  pieces: Piece[];
  waiting: { id: number; saying: Saying }[];
  running: boolean;
  /** A tool is at work: its card tells so itself. */
  calling: boolean;
}

export function rowKey(order: number): string {
  return `row-${order}`;
}

/** The rows that stand. Apart from what is live, so that a word of an answer does not touch five thousand rows. */
export function standing(rows: Row[]): ChatItem[] {
  return rows.map((row) => ({ key: rowKey(row.order), kind: "row", row }));
}

/** What comes after the rows; dots stand in for an answer whose first word is not here yet. */
export function live({ pieces, waiting, running, calling }: Now): ChatItem[] {
  const items: ChatItem[] = pieces.map((piece, index) => ({
    key: `piece-${piece.id}`,
    kind: "piece",
    piece,
    growing: running && index === pieces.length - 1,
  }));
  for (const one of waiting) items.push({ key: `waiting-${one.id}`, kind: "waiting", saying: one.saying });
  const last = pieces.at(-1);
  if (running && !calling && (!last || last.calls.length > 0)) items.push({ key: "dots", kind: "dots" });
  return items;
}

const LETTERS_IN_A_LINE = 80;
const LINE = 25; // px
const TALLEST_GUESS = 1_200;

const guesses = new WeakMap<Row, number>();

/** A height in px to start with, until the item was drawn. */
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
  if (row.kind === "cut" || row.kind === "undo") return 44;
  if (row.kind !== "message") return 64;
  const lines = Math.ceil(row.text.length / LETTERS_IN_A_LINE) + (row.text.match(/\n/g)?.length ?? 0) * 0.7;
  return Math.min(60 + lines * LINE + row.calls.length * 48, TALLEST_GUESS);
}
