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

/** When compaction comes, by the server's figures for every step.  ([a, b, …], 45) -> b */
export function startsAt<T>(starts: readonly T[], threshold: number): T | undefined {
  return starts[(threshold - LEAST) / STEP];
}

/** Every step, for the ticks. */
export const STEPS: readonly number[] = Array.from({ length: (MOST - LEAST) / STEP + 1 }, (_, index) => LEAST + index * STEP);

/** Where each strategy lies on the slider. */
export const BANDS: readonly { name: Strategy; from: number; to: number }[] = [
  { name: "cost", from: LEAST, to: 60 },
  { name: "balanced", from: 60, to: 75 },
  { name: "keep", from: 75, to: MOST },
];

/** The place of a step between the ends, in percent.  65 -> 50 */
export function placeOf(threshold: number): number {
  return ((threshold - LEAST) / (MOST - LEAST)) * 100;
}
