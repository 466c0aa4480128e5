import { expect, it } from "vitest";
import { perDay, readLimits, type Spent } from "./keys";

const NOTHING: Spent = { requests: 0, prompt: 0, output: 0, dollars: 0, summaries: 0, unpriced: 0 };

it.each([
  ["nothing", {}, {}],
  ["an empty field", { at_once: " " }, {}],
  ["figures", { at_once: "4", dollars_per_day: "2.5" }, { at_once: 4, dollars_per_day: 2.5 }],
  ["a comma", { dollars_per_month: "0,5" }, { dollars_per_month: 0.5 }],
  ["a part of a request", { at_once: "1.5" }, null],
  ["nought", { tokens_per_day: "0" }, null],
  ["a word", { tokens_per_day: "many" }, null],
])("reads limits: %s", (_, written, limits) => {
  expect(readLimits(written)).toEqual(limits);
});

it("adds up the days of all keys, in dollars where there are any", () => {
  const day = (more: Partial<Spent>) => ({ day: "2026-11-16", ...NOTHING, ...more });
  const key = (name: string, ...days: Spent[]) => ({
    name,
    total: { ...NOTHING, dollars: days.reduce((sum, one) => sum + one.dollars, 0) },
    days: days as (Spent & { day: string })[],
  });
  const days = ["2026-11-15", "2026-11-16"];
  const tokens = [key("a", day({ prompt: 5 }), day({ output: 2 })), key("b", day({}), day({ prompt: 1 }))];
  expect(perDay({ days, keys: tokens })).toEqual({ priced: false, values: [5, 3] });
  const dollars = [...tokens, key("c", day({ dollars: 0.5 }), day({}))];
  expect(perDay({ days, keys: dollars })).toEqual({ priced: true, values: [0.5, 0] });
  expect(perDay({ days, keys: [] })).toEqual({ priced: false, values: [0, 0] });
});
