/** What a context's figures mean: how full, how near, what it is made of. Pure; knows no words and no page. */
import type { Context, Part } from "../api";

/** The parts in the order in which a request has them. */
export const PARTS: readonly Part[] = [
  "system",
  "standing",
  "tools",
  "pinned",
  "summary",
  "recalled",
  "user",
  "assistant",
  "results",
];

const NEARLY_FULL = 0.9; // of the limit; above it one long answer can be too much

export type Level = "calm" | "over" | "full";

/** How much of the limit is used.  {tokens: 30, limit: 120} -> 0.25 */
export function fill(context: Pick<Context, "tokens" | "limit">): number {
  return context.limit > 0 ? context.tokens / context.limit : 0;
}

/** How much of the window is used, as every surface shows it; null if the window is unknown. */
export function usage(context: Pick<Context, "tokens" | "window">): number | null {
  return context.window ? context.tokens / context.window : null;
}

/** "over": beyond the threshold, so that the next request is compacted; "full": little of the limit is left. */
export function level(context: Pick<Context, "tokens" | "limit" | "high">): Level {
  if (fill(context) >= NEARLY_FULL) return "full";
  return context.high !== null && context.tokens > context.high ? "over" : "calm";
}

export interface PartShare {
  part: Part;
  tokens: number;
  share: number;
}

/** The parts that hold anything, with their share of the whole.  {user: 30, system: 10} -> system .25, user .75 */
export function partShares(parts: Partial<Record<Part, number>>): PartShare[] {
  const present = PARTS.flatMap((part) => {
    const tokens = parts[part] ?? 0;
    return tokens > 0 ? [{ part, tokens }] : [];
  });
  const all = present.reduce((sum, { tokens }) => sum + tokens, 0);
  return present.map((one) => ({ ...one, share: one.tokens / all }));
}

const LEAST_WINDOW = 1_000;
const MOST_WINDOW = 20_000_000;

/** A window as people write it.  "128k" -> 128000, "1,000,000" -> 1000000, "1.5M" -> 1500000, "x" -> null */
export function readWindow(text: string): number | null {
  const found = /^([\d.]+)([km万]?)$/i.exec(text.replace(/[\s,_，]/g, ""));
  if (!found) return null;
  const unit = { "": 1, k: 1_000, m: 1_000_000, 万: 10_000 }[found[2].toLowerCase()] ?? 1;
  const tokens = Math.round(Number(found[1]) * unit);
  return tokens >= LEAST_WINDOW && tokens <= MOST_WINDOW ? tokens : null;
}
