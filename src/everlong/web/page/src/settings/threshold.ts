/** The threshold's steps, what it favours, and what it means in tokens. */

export const LEAST = 40;
export const MOST = 90;
export const STEP = 5;

export type Strategy = "cost" | "balanced" | "keep";

/** Below 60 cost first, 60 to 75 balanced, above 75 keep information.  60 -> "balanced" */
export function strategy(threshold: number): Strategy {
  if (threshold < 60) return "cost";
  return threshold <= 75 ? "balanced" : "keep";
}

const REPLY = 4_096; // tokens kept free for the answer, at most a quarter of the window
const MARGIN = 1_024; // tokens for framing, at most a 32nd

/** About where compaction starts; what tools take is not known here.  (16 384, 50) -> 5 888 */
export function startsAt(window: number, threshold: number): number {
  const room = window - Math.min(REPLY, window / 4) - Math.min(MARGIN, window / 32);
  return Math.round((room * threshold) / 100);
}
