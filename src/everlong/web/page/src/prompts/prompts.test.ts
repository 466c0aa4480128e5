import { describe, expect, it } from "vitest";
import { filled, found, placeholders, readFile, slashed, writeFile } from "./prompts";

const prompt = (title: string, text: string) => ({ id: title, title, text });

describe("prompts", () => {
  it("name their places, in any language, and leave code alone", () => {
    expect(placeholders("{the text} into {{目标语言}}, {the text}")).toEqual(["the text", "目标语言"]);
    expect(placeholders('{"a": 1} ${x} {} { 3 } {a\nb}')).toEqual(["x"]);
  });
  it("are filled where there is something to fill in", () => {
    expect(filled("{a} and {{b}} and {a}", { a: "x", b: "" })).toBe("x and {{b}} and x");
    expect(filled("{a}", { a: "$& {b}" })).toBe("$& {b}");
  });
  it("are found by words, titles first", () => {
    const all = [prompt("Code", "review this"), prompt("Review", "…"), prompt("Plan", "…")];
    expect(found(all, "review").map((one) => one.title)).toEqual(["Review", "Code"]);
    expect(found(all, "")).toEqual(all);
  });
  it("are asked for by a slash at the very beginning", () => {
    expect(["/", "/tra", "/tra now"].map(slashed)).toEqual(["", "tra", "tra now"]);
    expect(["", "a/b", "/usr/bin", "//", "/ a", "/a\nb"].map(slashed)).toEqual(Array(6).fill(null));
  });
  it("go to a file and come back", () => {
    const all = [prompt("One", "a {b}"), prompt("二", "文")];
    expect(readFile(writeFile(all))).toEqual(all.map(({ title, text }) => ({ title, text })));
  });
  it("come from files of other programs", () => {
    expect(readFile('[{"command": "/sum", "title": "Sum", "content": "Sum up"}, {"name": "N", "prompt": "P"}, null, {"title": 3}]')).toEqual([
      { title: "Sum", text: "Sum up" },
      { title: "N", text: "P" },
    ]);
    for (const nothing of ["", "{", "null", "[]", "{}", '[{"title": " ", "text": "x"}]']) expect(readFile(nothing)).toBeNull();
  });
});
