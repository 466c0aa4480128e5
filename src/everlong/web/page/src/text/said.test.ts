import { expect, it } from "vitest";
import { saidParts } from "./said";

/** The text that HTML shows. */
function shown(html: string): string {
  const plain = html.replace(/<[^>]*>/g, "");
  return plain.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&");
}
const prose = (text: string) => saidParts(text).map((part) => (part.kind === "prose" ? part.html : ""))[0];

const KEPT: [string, string][] = [
  ["a tag", '<div class="x">hi</div> <b>'],
  ["an entity", "&lt; &amp; &nbsp;"],
  ["arguments", "def f(*args, **kwargs): return 2*3*4"],
  ["names with underscores", "__init__ and _private_ and snake_case_name"],
  ["indentation", "a\n    four\n\ttab\n  two"],
  ["a note in code", "# not a heading\nx = 1"],
  ["a rule and a definition", "---\n[a]: b\n***"],
  ["numbers of a list", "3. three\n7. seven"],
  ["a python session", ">>> print(1)\n1"],
  ["backslashes", "C:\\*dir\\_x \\[not maths"],
  ["brackets", "foo[0](bar) ![x](y)"],
  ["a shell", 'echo "$a,$b" `date` ~/a ~/b $HOME'],
  ["an open fence", "```js\nlet a"],
  ["a table with too many cells", "|a|b|\n|-|-|\n|1|2|3|"],
  ["many ticks", "` `` ``` `` ` ```` x"],
];
it.each(KEPT)("keeps every letter: %s", (_, text) => expect(shown(prose(text))).toBe(text));

it("keeps every letter of anything", () => {
  const pieces = ["*", "**", "`", "``", "~~", "$", "\\", "[", "](", "<b>", "&", "#", "> ", " ", "\n", "a", "1", "_", "|", "-", "https://a.b/c", "字"];
  let seed = 7;
  const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 3_000; round += 1) {
    const text = Array.from({ length: 1 + next(25) }, () => pieces[next(pieces.length)]).join("");
    const parts = saidParts(text);
    if (parts.length === 1 && parts[0].kind === "prose") expect(shown(parts[0].html)).toBe(text);
  }
});

it("gives markdown its look", () => {
  expect(prose("a **b** *c* ~~d~~ `e`")).toBe(
    'a <strong><span class="mark">**</span>b<span class="mark">**</span></strong> ' +
      '<em><span class="mark">*</span>c<span class="mark">*</span></em> ' +
      '<del><span class="mark">~~</span>d<span class="mark">~~</span></del> ' +
      '<code><span class="mark">`</span>e<span class="mark">`</span></code>',
  );
  expect(prose("see https://a.b/c.")).toMatch(/<a href="https:\/\/a\.b\/c"[^>]*>https:\/\/a\.b\/c<\/a>\.$/);
  expect(prose("# Title")).toBe('<strong><span class="mark"># </span>Title</strong>');
  expect(prose("$x^2$ costs $5 and $6")).toBe('<span class="maths">$x^2$</span> costs $5 and $6');
});

it("takes fences, tables and formulas over lines out of prose", () => {
  const text = "Look:\n\n```py\nprint(1)\n\n  x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n$$\nx\n$$\nend";
  expect(saidParts(text)).toEqual([
    { kind: "prose", html: "Look:\n" },
    { kind: "code", language: "py", text: "print(1)\n\n  x" },
    { kind: "table", text: "| a | b |\n|---|---|\n| 1 | 2 |" },
    { kind: "prose", html: '<span class="maths display">$$\nx\n$$</span>' },
    { kind: "prose", html: "end" },
  ]);
});

it("shows no tag and no handler of its own", () => {
  const html = prose('<img src=x onerror=a> `<b>` **<i>** https://a.b/"onclick="x $<x>$');
  expect(html.match(/<\w+/g)?.every((tag) => ["<span", "<code", "<strong", "<a"].includes(tag))).toBe(true);
  expect(html).not.toMatch(/<[^>]*onclick="x/);
});
