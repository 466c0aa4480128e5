import { expect, it } from "vitest";
import { readable } from "./progress";

it.each([
  ["plain words stay", "## Goal\nA shop", "## Goal\nA shop"],
  ["sentences of JSON", '{"context": "A shop.", "done": ["One", "Two"]}', "A shop.\nOne\nTwo"],
  ["a sentence half written", '{"done": ["One", "Tw', "One\nTw"],
  ["escapes", String.raw`{"a": "say \"hi\"\n你好"}`, 'say "hi"\n你好'],
  ["cut in an escape", String.raw`{"a": "say \u4f`, String.raw`say \u4f`],
  ["a fence around it", '```json\n{"a": "x"}', "x"],
])("%s", (_, text, expected) => expect(readable(text)).toBe(expected));
