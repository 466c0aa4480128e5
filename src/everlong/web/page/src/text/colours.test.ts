import { expect, it } from "vitest";
import { addsOnlySpans, loadColours, paint } from "./colours";

it("has no colours before they are loaded, nor for plain text", async () => {
  expect(paint("x = 1", "python")).toBeNull();
  expect(await loadColours("text")).toBe(false);
  expect(await loadColours("")).toBe(false);
});

it("colours code and keeps every letter of it", async () => {
  const code = "/* <x> */ \"a\" 'b' & `c` # - + \n-old\n+new";
  for (const language of ["python", "js", "diff", "html", "dockerfile", "haskell", "tex"]) {
    expect(await loadColours(language)).toBe(true);
    expect(addsOnlySpans(paint(code, language) ?? "", code)).toBe(true);
  }
  expect(paint("-a\n+b", "diff")).toBe('<span class="hljs-deletion">-a</span>\n<span class="hljs-addition">+b</span>');
});

it("leaves unknown languages and very long code as they are", async () => {
  await loadColours("no-such-language");
  expect(paint("x", "no-such-language")).toBeNull();
  expect(paint("x = 1\n".repeat(20_000), "python")).toBeNull();
});

it("takes nothing but colours for colours", () => {
  expect(addsOnlySpans('<span class="a">x</span>', "x")).toBe(true);
  expect(addsOnlySpans("<b>x</b>", "x")).toBe(false);
  expect(addsOnlySpans('<span class="a" onclick="b">x</span>', "x")).toBe(false);
  expect(addsOnlySpans("", "x")).toBe(false);
});
