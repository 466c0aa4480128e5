import { expect, test, vi } from "vitest";
import { ApiError } from "../api";
import type { Failure } from "../contract";
import { en } from "../words/en";

vi.stubGlobal("navigator", { language: en["language.tag"] }); // the words are those of the browser's language
const { explained, failureKey, told, waitFor } = await import("./failures");

const failure = (change: Partial<Failure>): Failure => ({
  kind: "failed",
  details: "",
  actions: [],
  status: null,
  after: null,
  source: "main",
  model: "gpt",
  address: "http://127.0.0.1/v1",
  suggested: "",
  editable: true,
  ...change,
});

test("a kind has its own words, an unknown one plain ones", () => {
  expect(failureKey("rate")).toBe("failure.rate");
  expect(failureKey("never heard of")).toBe("failure.other");
  expect(failureKey("hasOwnProperty")).toBe("failure.other");
});

test("every place in the words is filled", () => {
  for (const kind of ["key", "path", "no_such_model", "no_room", "given"]) expect(told(failure({ kind }))).not.toMatch(/[{}]/);
  expect(explained(new ApiError(409, "key", "no"))).not.toMatch(/[{}]/);
});

test("one waits as long as the provider asks, twenty seconds where it asks nothing, and not for hours", () => {
  const rate = { kind: "rate", actions: ["wait"] };
  expect(waitFor(failure({ ...rate, after: 7.2 }))).toBe(8);
  expect(waitFor(failure({ ...rate, after: 0 }))).toBe(1);
  expect(waitFor(failure(rate))).toBe(20);
  expect(waitFor(failure({ ...rate, after: 3_600 }))).toBeNull();
  expect(waitFor(failure({ kind: "key", actions: ["retry"] }))).toBeNull();
});
