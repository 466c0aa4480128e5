import { expect, it } from "vitest";
import { formulaAt, formulaStart } from "./maths";

const FORMULAS: [string, string, string, boolean][] = [
  ["one dollar", "$x^2$ and", "x^2", false],
  ["a letter", "$n$th", "n", false],
  ["a figure", "$3$ of", "3", false],
  ["two dollars", "$$x = 1$$", "x = 1", true],
  ["over lines", "$$\nx\n=\n1\n$$", "x\n=\n1", true],
  ["round brackets", "\\(a+b\\)", "a+b", false],
  ["square brackets", "\\[a\\]", "a", true],
  ["a dollar inside", "$\\$5 + x$", "\\$5 + x", false],
  ["words in a text", "$\\text{if } x > 0$", "\\text{if } x > 0", false],
  ["a figure first", "$2x + 3y$", "2x + 3y", false],
  ["a name with an index", "$x_{max}$", "x_{max}", false],
];
it.each(FORMULAS)("%s", (_, text, tex, display) => expect(formulaAt(text)).toMatchObject({ tex, display }));

const NONE: [string, string][] = [
  ["prices", "$5 and $6"],
  ["prices with signs around", "$5-$6"],
  ["a price and a word", "$5 or 6$"],
  ["prices in other letters", "$5元或者6$"],
  ["a range in words", "$20 (twenty) to 30$"],
  ["shell variables", "$HOME:$PATH"],
  ["a path of variables", "$HOME/bin:$PATH"],
  ["stock names", "$AAPL rose and $MSFT fell"],
  ["a space at the end", "$x $"],
  ["a space at the start", "$ x$"],
  ["an empty line inside", "$$a\n\nb$$"],
  ["nothing inside", "$$$$"],
  ["code inside", "$5 `a$`"],
  ["no end", "$x + y"],
  ["one without its end", "\\(x"],
];
it.each(NONE)("no formula: %s", (_, text) => expect(formulaAt(text)).toBeNull());

it("begins neither inside a word nor behind a backslash", () => {
  expect(formulaStart("US$5")).toBe(-1);
  expect(formulaStart("\\$5")).toBe(-1);
  expect(formulaStart("a $x$")).toBe(2);
  expect(formulaStart("a \\(x\\)")).toBe(2);
  expect(formulaStart("a \\\\(x\\)")).toBe(-1);
});

it("looks at no more than a formula's length, whatever comes", () => {
  for (const text of ["$".repeat(100_000), "$x".repeat(50_000), "\\(".repeat(50_000), `$$${"\n".repeat(100_000)}`]) {
    expect(formulaAt(text)?.raw.length ?? 0).toBeLessThanOrEqual(4_000);
  }
});
