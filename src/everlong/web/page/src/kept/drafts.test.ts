import { beforeEach, expect, test } from "vitest";
import { listDrafts, LONGEST, readDraft, writeDraft } from "./drafts";

/** The storage of a browser, as far as drafts use it. */
class Storage {
  #held = new Map<string, string>();
  get length() {
    return this.#held.size;
  }
  key = (index: number) => [...this.#held.keys()][index] ?? null;
  getItem = (key: string) => this.#held.get(key) ?? null;
  setItem = (key: string, value: string) => void this.#held.set(key, value);
  removeItem = (key: string) => void this.#held.delete(key);
}

beforeEach(() => {
  Object.defineProperty(globalThis, "localStorage", { value: new Storage(), configurable: true });
});

function stamp(written: ReturnType<typeof writeDraft>): string {
  return typeof written === "object" && "stamp" in written ? written.stamp : "";
}

test("two tabs do not overwrite each other: who read an older one is given the newer", () => {
  const first = stamp(writeDraft("t", "one", [], ""));
  const second = stamp(writeDraft("t", "one more", [], first));
  expect(writeDraft("t", "other", [], first)).toEqual({ other: expect.objectContaining({ text: "one more" }) });
  expect(readDraft("t")?.text).toBe("one more");
  expect(writeDraft("t", "", [], first)).toEqual({ other: expect.objectContaining({ text: "one more" }) });
  expect(writeDraft("t", "", [], second)).toEqual({ stamp: "" });
  expect(readDraft("t")).toBeNull();
});

test("the oldest go when there are too many, too much, or they are too old", () => {
  for (let number = 0; number < 60; number += 1) writeDraft(`t${number}`, "x", [], "", number + 1);
  expect(listDrafts().length).toBe(50);
  expect(readDraft("t0")).toBeNull();
  for (let number = 0; number < 8; number += 1) writeDraft(`l${number}`, "x".repeat(LONGEST), [], "", 100 + number);
  expect(listDrafts().map((one) => one.thread)).toEqual(["l7", "l6", "l5", "l4", "l3"]);
  writeDraft("new", "x", [], "", 1e12);
  expect(listDrafts().map((one) => one.thread)).toEqual(["new"]);
  expect(writeDraft("new", "x".repeat(LONGEST + 1), [], readDraft("new")?.stamp ?? "")).toBe("too long");
});

test("what is not a draft is none", () => {
  for (const text of ["", "{", "[]", "null", '{"text":1}']) {
    localStorage.setItem("everlong.draft:t", text);
    expect(readDraft("t")).toBeNull();
  }
});
