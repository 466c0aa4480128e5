/** The threshold's steps, what it favours, and what it means in tokens. */

export const LEAST = 40;
export const MOST = 90;
export const STEP = 5;
export const USUAL = 60;

export type Strategy = "cost" | "balanced" | "keep";

/** Below 60 cost first, 60 to 75 balanced, above 75 keep information.  60 -> "balanced" */
export function strategy(threshold: number): Strategy {
  if (threshold < 60) return "cost";
  return threshold <= 75 ? "balanced" : "keep";
}

/** Where compaction starts, by the server's figures for every step.  ([400, 450, …], 45) -> 450 */
export function startsAt(starts: readonly number[], threshold: number): number | undefined {
  return starts[(threshold - LEAST) / STEP];
}
