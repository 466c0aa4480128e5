/**
 * The answer that is being written, before it is a row.
 *
 * Pure: each event makes a new list of pieces; a piece is one answer of the model (its thinking, words and calls).
 * Words of an answer that was stopped or broke off become a row too; until the row arrives, they stay in view.
 */
import type { Call, Row, ThreadEvent } from "../api";

export interface Piece {
  id: number;
  thinking: string;
  text: string;
  calls: Call[];
}

let count = 0;
const fresh = (): Piece => ({ id: ++count, thinking: "", text: "", calls: [] });

/** Words that follow a call belong to the model's next answer. */
function open(pieces: Piece[]): Piece[] {
  const last = pieces.at(-1);
  return last && last.calls.length === 0 ? pieces : [...pieces, fresh()];
}

function changeLast(pieces: Piece[], change: (piece: Piece) => Piece): Piece[] {
  return [...pieces.slice(0, -1), change(pieces[pieces.length - 1])];
}

/** The pieces after one event of the stream; a row that arrives replaces its piece. */
export function heard(pieces: Piece[], event: ThreadEvent): Piece[] {
  switch (event.type) {
    case "said":
      return changeLast(open(pieces), (piece) => ({ ...piece, text: piece.text + event.text }));
    case "thought":
      return changeLast(open(pieces), (piece) => ({ ...piece, thinking: piece.thinking + event.text }));
    case "call": {
      const call = { id: event.id, name: event.name, arguments: event.arguments };
      const known = pieces.some((piece) => piece.calls.some((other) => other.id === event.id));
      if (known) return pieces;
      const base = pieces.length ? pieces : [fresh()];
      return changeLast(base, (piece) => ({ ...piece, calls: [...piece.calls, call] }));
    }
    case "restarted":
      return pieces.length && pieces[pieces.length - 1].calls.length === 0 ? pieces.slice(0, -1) : pieces;
    case "row":
      return event.row.role === "assistant" && event.row.kind === "message" ? settle(pieces, event.row) : pieces;
    case "ended":
      return event.reason === "done" ? [] : pieces.filter((piece) => piece.text !== "");
    case "running":
      return event.running ? [] : pieces;
    case "reset":
      return [];
    default:
      return pieces;
  }
}

/** The pieces without the one that is now `row`, and without all before it. */
function settle(pieces: Piece[], row: Row): Piece[] {
  const ids = new Set(row.calls.map((call) => call.id));
  const index = pieces.findIndex((piece) => piece.calls.some((call) => ids.has(call.id)));
  return pieces.slice(index < 0 ? 1 : index + 1);
}
