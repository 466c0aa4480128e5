import { expect, it } from "vitest";
import { marked } from "./matches";

const seen = (text: string, words: string) => marked(text, words).map((piece) => (piece.hit ? `[${piece.text}]` : piece.text));

it.each([
  ["marks a word", "say hi now", "hi", ["say ", "[hi]", " now"]],
  ["whatever its case", "Tide", "tide", ["[Tide]"]],
  ["takes signs as they are", "a+b", "+", ["a", "[+]", "b"]],
  ["without words", "text", "  ", ["text"]],
  ["begins a little before a far match", `${"x".repeat(50)}hi`, "hi", [`…${"x".repeat(30)}`, "[hi]"]],
])("%s", (_, text, words, wanted) => expect(seen(text, words)).toEqual(wanted));
