import { Marked } from "marked";
import { expect, it } from "vitest";
import { nameIn, note, reference } from "./notes";

const parser = new Marked({ extensions: [note, reference] });
const kinds = (text: string) => parser.lexer(text).filter((token) => token.type !== "space").map((token) => token.type);

it("takes notes apart from the text around them", () => {
  expect(kinds("Text[^a].\n\n[^a]: A note.\n[^b]: Another.\n\nMore.")).toEqual(["paragraph", "note", "note", "paragraph"]);
  expect(kinds("Text.\n[^a]: A note.")).toEqual(["paragraph", "note"]);
});

it("keeps all lines of a note", () => {
  const [token] = parser.lexer("[^a]: One\n  two\nthree\n\nNot of it.");
  expect(parser.parser([token])).toBe("<p>One\ntwo\nthree</p>\n");
});

const NONE: [string, string][] = [
  ["no name", "[^]: x"],
  ["a name with a space", "[^a b]: x"],
  ["code", "    [^a]: x"],
  ["a link", "[a]: https://example.com"],
];
it.each(NONE)("no note: %s", (_, text) => expect(kinds(text)).not.toContain("note"));

it("shows a reference as it was written", () => {
  expect(parser.parse("See[^a].")).toBe('<p>See<sup class="reference">[^a]</sup>.</p>\n');
  expect(parser.parse("`[^a]`")).toBe("<p><code>[^a]</code></p>\n");
  expect(parser.parse('[^"><script>]')).not.toContain("<script>");
  expect(nameIn("[^a]")).toBe("a");
  expect(nameIn("a")).toBe("");
});

it("takes no longer for hostile text than for any other", () => {
  const steps = ["[^".repeat(20_000), `[^a]: ${"\n x".repeat(20_000)}`, `[^${"a".repeat(50_000)}]: x`];
  for (const text of steps) expect(parser.lexer(text).map((token) => token.raw).join("")).toBe(text);
});
