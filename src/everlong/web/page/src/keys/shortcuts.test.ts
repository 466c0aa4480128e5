import { expect, test } from "vitest";
import { lastCode, SHORTCUTS, shortcutOf, written, type Press } from "./shortcuts";

const press = (code: string, held = "", key = ""): Press => ({
  code,
  key,
  altKey: held.includes("a"),
  ctrlKey: held.includes("c"),
  metaKey: held.includes("m"),
  shiftKey: held.includes("s"),
  isComposing: held.includes("i"),
});

test.each([
  ["Alt+N", press("KeyN", "a"), false, false, "new"],
  ["Alt+N in a field", press("KeyN", "a"), true, false, "new"],
  ["Alt+N in a field of a Mac writes a letter", press("KeyN", "a"), true, true, null],
  ["Cmd+K on a Mac", press("KeyK", "m"), true, true, "search"],
  ["Ctrl+K on a Mac deletes to the end of the line", press("KeyK", "c"), true, true, null],
  ["Ctrl+K while a word is being composed", press("KeyK", "ci"), true, false, null],
  ["AltGr+N", press("KeyN", "ac"), false, false, null],
  ["a question mark", press("Slash", "s", "?"), false, false, "help"],
  ["a question mark in a field", press("Slash", "s", "?"), true, false, null],
  ["Ctrl+/ in a field", press("Slash", "c", "/"), true, false, "help"],
  ["n", press("KeyN", "", "n"), false, false, null],
  ["Alt+Shift+C", press("KeyC", "as"), true, false, "copy_answer"],
])("%s", (_, pressed, typing, mac, expected) => expect(shortcutOf(pressed, typing, mac)).toBe(expected));

test("every shortcut can be written, and no two are the same", () => {
  const all = SHORTCUTS.flatMap((one) => written(one, false).map((keys) => keys.join("+")));
  expect(new Set(all).size).toBe(all.length);
  expect(written("new", true)[0]).toEqual(["⌥", "N"]);
});

test.each([
  ["none", "no code", null],
  ["one", "a\n```js\nf()\n```\nb", "f()"],
  ["the last", "```\na\n```\n~~~py\nb\nc\n~~~", "b\nc"],
  ["one without an end", "```js\nf()", "f()"],
])("the last code: %s", (_, text, code) => expect(lastCode(text)).toBe(code));
