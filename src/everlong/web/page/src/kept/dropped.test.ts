import { beforeEach, expect, test } from "vitest";
import { dropped, noteDropped, noteGone } from "./dropped";

beforeEach(() => {
  const held = new Map<string, string>();
  const storage = {
    getItem: (key: string) => held.get(key) ?? null,
    setItem: (key: string, value: string) => void held.set(key, value),
    removeItem: (key: string) => void held.delete(key),
  };
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
});

test("a name stays until the database has dropped its message", () => {
  noteDropped("one");
  noteDropped("two");
  noteDropped("one");
  expect(dropped()).toEqual(["two", "one"]);
  noteGone("two");
  expect(dropped()).toEqual(["one"]);
  noteGone("one");
  expect(localStorage.getItem("everlong.dropped")).toBeNull();
});

test("the oldest names go when there are too many, and what is not a list is none", () => {
  for (let number = 0; number < 150; number += 1) noteDropped(`${number}`);
  expect(dropped().length).toBe(100);
  expect(dropped()[0]).toBe("50");
  for (const text of ["", "{", "null", '{"a":1}']) {
    localStorage.setItem("everlong.dropped", text);
    expect(dropped()).toEqual([]);
  }
});
