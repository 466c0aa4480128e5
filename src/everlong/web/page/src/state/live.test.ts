import { describe, expect, it } from "vitest";
import type { Row, ThreadEvent } from "../api";
import { heard, type Piece } from "./live";

const row = (more: Partial<Row>): Row => ({
  order: 1, id: "", time: 0, kind: "message", role: "assistant", text: "", thinking: "", images: [], calls: [],
  results: [], pinned: false, sent: "", covers: null, reason: "", messages: null, kept: null, shortened: null, left_out: null, tokens_before: null, tokens_after: null, stands: true,
  ...more,
});
const call = (id: string): ThreadEvent => ({ type: "call", id, name: "read", arguments: "{}" });
const said = (text: string): ThreadEvent => ({ type: "said", text });
const ended = (reason: string): ThreadEvent => ({ type: "ended", reason, steps: 1 });
const after = (...events: ThreadEvent[]) => events.reduce<Piece[]>(heard, []);
const texts = (pieces: Piece[]) => pieces.map((piece) => [piece.text, piece.calls.map((one) => one.id).join()]);

const CASES: [string, ThreadEvent[], string[][]][] = [
  ["words grow one piece", [said("a"), said("b")], [["ab", ""]]],
  ["words after a call are the next answer", [said("a"), call("1"), said("b")], [["a", "1"], ["b", ""]]],
  ["a call told twice is one", [call("1"), call("1")], [["", "1"]]],
  ["a row takes the place of its words", [said("a"), { type: "row", row: row({ text: "a" }) }], []],
  [
    "a row with calls takes the piece that holds them",
    [said("a"), call("1"), said("b"), { type: "row", row: row({ calls: [{ id: "1", name: "read", arguments: "" }] }) }],
    [["b", ""]],
  ],
  ["what the reader said leaves the answer alone", [said("a"), { type: "row", row: row({ role: "user" }) }], [["a", ""]]],
  ["a new start drops the words so far", [said("a"), { type: "restarted", reason: "overflow" }, said("b")], [["b", ""]]],
  ["the end of a turn that went well leaves nothing", [said("a"), ended("done")], []],
  ["words of a stopped answer stay in view", [said("a"), ended("interrupted")], [["a", ""]]],
  ["and go when the next turn begins", [said("a"), ended("interrupted"), { type: "running", running: true }], []],
];

describe("the answer that is being given", () => {
  it.each(CASES)("%s", (_, events, wanted) => expect(texts(after(...events))).toEqual(wanted));
});
