import { beforeEach, expect, test } from "vitest";
import { expected, notePace, waitingFor } from "./waiting";

const kept = new Map<string, string>();
beforeEach(() => {
  kept.clear();
  globalThis.localStorage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  } as Storage;
});

test.each([
  [{ seconds: 0, tokens: 6_300, about: 0 }, null],
  [{ seconds: 1, tokens: 6_300, about: 0 }, "waiting.sending"],
  [{ seconds: 4, tokens: 6_300, about: 0 }, "waiting.reading"],
  [{ seconds: 4, tokens: 6_300, about: 20 }, "waiting.about"],
  [{ seconds: 4, tokens: 0, about: 0 }, "waiting.plain"],
  [{ seconds: 60, tokens: 6_300, about: 0 }, "waiting.long"],
  [{ seconds: 60, tokens: 6_300, about: 40 }, "waiting.about"],
  [{ seconds: 121, tokens: 6_300, about: 40 }, "waiting.long"],
])("%o is told as %s", (wait, key) => {
  expect(waitingFor(wait)).toBe(key);
});

test("what a model took before is what it will take for as much", () => {
  expect(expected("local/local", 6_000)).toBe(0);
  notePace("local/local", 6_000, 20);
  expect(expected("local/local", 3_000)).toBe(10);
  notePace("other/quick", 6_000, 0.3);
  expect(expected("other/quick", 3_000)).toBe(0);
});

test("a value of somebody else is no pace", () => {
  kept.set("everlong.pace", "[nonsense");
  expect(expected("local/local", 6_000)).toBe(0);
  kept.set("everlong.pace", '{"local/local": "fast"}');
  expect(expected("local/local", 6_000)).toBe(0);
});
