import { expect, test, vi } from "vitest";
import type { Context } from "../contract";
import { en } from "../words/en";

vi.stubGlobal("navigator", { language: en["language.tag"] }); // the words are those of the browser's language
const { prediction, switched } = await import("./prediction");

const context = (change: Partial<Context> = {}): Context => ({
  model: "main/large",
  assumed: null,
  tokens: 40_000,
  limit: 120_000,
  soon: 70_000,
  high: 72_000,
  next: "nothing",
  undone: false,
  window: 128_000,
  window_source: "registry",
  known: true,
  certainty: "counted",
  parts: {} as Context["parts"],
  messages: 4,
  covered: 0,
  auto: "follow",
  auto_on: true,
  compacting: false,
  threshold: 60,
  can_undo: false,
  ...change,
});

test("it says from when on, until when, and how much is left", () => {
  expect(prediction(context())).toMatch(/70,000.+72,000.+30,000/);
  expect(prediction(context({ soon: 72_000 }))).toMatch(/^[^0-9]+72,000[^0-9]+32,000/);
  expect(prediction(context({ soon: 110_000, high: 120_000, undone: true }))).toMatch(/120,000/);
});

test("every other case has words of its own", () => {
  const cases = [
    prediction(context(), true),
    prediction(context({ known: false, window: null, assumed: 96_000 })),
    prediction(context({ auto_on: false })),
    prediction(context({ auto_on: false, next: "trim" })),
    prediction(context({ next: "rules", soon: null, high: null })),
    prediction(context({ next: "compaction" })),
    prediction(context({ next: "summary" })),
  ];
  expect(new Set(cases).size).toBe(cases.length);
  for (const text of cases) expect(text).not.toMatch(/[{}]/);
});

test("a smaller model is told with what it brings", () => {
  const small = { model: "main/small", window: 16_000, limit: 15_000, tokens: 40_000 };
  expect(switched(context(), context())).toBeNull();
  expect(switched(context(), context({ ...small, next: "compaction" }))).toMatch(/small.+16,000/);
  expect(switched(context(), context({ ...small, next: "trim", auto_on: false }))).not.toBe(
    switched(context(), context({ ...small, next: "compaction" })),
  );
  expect(switched(context(), context({ model: "main/none", window: null, known: false, assumed: 96_000 }))).toMatch(/96,000/);
  expect(switched(context({ ...small }), context())).toMatch(/128,000/);
  const due = context({ ...small, model: "main/other", next: "compaction" });
  expect(switched(context({ ...small }), due)).toBe(prediction(due)); // no smaller: it was due before
});
