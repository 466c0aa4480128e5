import { expect, it } from "vitest";
import { splitFiles } from "./attachedFiles";

const file = (name: string, text: string) => `<file name="${name}">\n${text}\n</file>`;

it.each([
  ["words alone", "Look", "Look", []],
  ["a file alone", file("a.txt", "boats: 7"), "", ["a.txt"]],
  ["words and two files", `Look\n${file("a.txt", "x\n\ny")}\n${file("b (page 3–4)", "z")}`, "Look", ["a.txt", "b (page 3–4)"]],
  ["a tag that nobody closed", "<file name=\"a\">\nx", "<file name=\"a\">\nx", []],
])("%s", (_, text, words, names) => {
  const split = splitFiles(text);
  expect(split.words).toBe(words);
  expect(split.files.map((one) => one.name)).toEqual(names);
});
