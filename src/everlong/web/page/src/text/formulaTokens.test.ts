import { Marked } from "marked";
import { expect, it } from "vitest";
import { formula, formulaBlock } from "./formulaTokens";
import { note, reference } from "./notes";

const parser = new Marked({ extensions: [note, reference, formulaBlock, formula] });
const html = (text: string) => parser.parse(text, { async: false });

it("finds formulas in lines, on lines of their own and in lists", () => {
  expect(html("a $x$ b")).toBe('<p>a <span class="maths">$x$</span> b</p>\n');
  expect(html("so:\n$$\n- x\n= 1\n$$\nand")).toBe(
    '<p>so:\n</p>\n<p><span class="maths display">$$\n- x\n= 1\n$$</span></p><p>and</p>\n'.replace("so:\n", "so:"),
  );
  expect(html("- a \\(x\\)")).toContain('<li>a <span class="maths">\\(x\\)</span></li>');
  expect(html("**$x$**")).toBe('<p><strong><span class="maths">$x$</span></strong></p>\n');
});

it("finds none in code, and none in prices", () => {
  for (const text of ["`$x$`", "```\n$x$\n```", "$5 and $6", "US$5, US$6", "\\$x\\$", "a$$b"]) {
    expect(html(text)).not.toContain("maths");
  }
});

it("keeps every letter of anything", () => {
  const pieces = ["$", "$$", "\\(", "\\)", "\\[", "\\]", "[^a]", "[^a]: ", "`", "\n", "\n\n", " ", "x", "1", "字"];
  const trimmed = (text: string) => text.replace(/^[ \t]+$/gm, "").trimEnd(); // marked's lexer empties blank lines
  let seed = 11;
  const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 3_000; round += 1) {
    const text = Array.from({ length: 1 + next(20) }, () => pieces[next(pieces.length)]).join("");
    const raw = parser.lexer(text).map((token) => token.raw).join("");
    expect(trimmed(raw)).toBe(trimmed(text));
  }
});
