/** The usage figures as the page shows them: totals and series by day. Pure. */
import type { Usage, UsageDay } from "../api";
import { total } from "../charts/series";

export type Figure = Exclude<keyof UsageDay, "day">;

/** One figure of every day, in order.  ([{day: …, cost: 2}], "cost") -> [2] */
export function byDay(days: UsageDay[], figure: Figure): number[] {
  return days.map((one) => one[figure]);
}

/** The sent tokens that did not come from the cache. */
export function fresh(days: UsageDay[]): number[] {
  return days.map((one) => Math.max(one.prompt - one.cached, 0));
}

export type Totals = Record<Figure, number> & { cacheRate: number };

export function totals(days: UsageDay[]): Totals {
  const sum = (figure: Figure) => total(byDay(days, figure));
  const prompt = sum("prompt");
  const cached = sum("cached");
  return {
    prompt,
    cached,
    output: sum("output"),
    calls: sum("calls"),
    cost: sum("cost"),
    summary_calls: sum("summary_calls"),
    summary_cost: sum("summary_cost"),
    saved_tokens: sum("saved_tokens"),
    saved_cost: sum("saved_cost"),
    compactions: sum("compactions"),
    overflows: sum("overflows"),
    recovered: sum("recovered"),
    cacheRate: prompt > 0 ? cached / prompt : 0,
  };
}

export function isEmpty(usage: Usage): boolean {
  return usage.models.length === 0 && usage.days.every((one) => one.prompt + one.output + one.compactions === 0);
}

/** The success figures in the order they are read. */
export const SUCCESS = [
  "overflow_errors",
  "recovered",
  "compactions",
  "median_length",
  "longest",
  "threads",
  "threads_by_hand",
] as const satisfies readonly (keyof Usage["success"])[];
