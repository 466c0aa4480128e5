/** The rows of a thread as a sorted list. Pure. */
import type { Result, Row } from "../api";

/** Merge `fresh` into `old`, sorted by order; a fresh row replaces an old one of the same order. */
export function merge(old: Row[], fresh: Row[]): Row[] {
  if (fresh.length === 0) return old;
  const newest = old.at(-1);
  if (!newest || newest.order < fresh[0].order) return [...old, ...fresh];
  if (fresh[fresh.length - 1].order < old[0].order) return [...fresh, ...old];
  const byOrder = new Map(old.map((row) => [row.order, row]));
  for (const row of fresh) byOrder.set(row.order, row);
  return [...byOrder.values()].sort((a, b) => a.order - b.order);
}

/** The outcome of a call: its result and, once it is stored, the row that holds it. */
export interface Outcome {
  result: Result;
  row: Row | null;
  seconds: number | null;
}

/** The outcome of each call, by the call's id. */
export function outcomes(rows: Row[]): Map<string, Outcome> {
  const found = new Map<string, Outcome>();
  for (const row of rows) {
    for (const result of row.results) {
      found.set(result.call, { result, row, seconds: result.seconds ?? null });
    }
  }
  return found;
}

/**
 * The rows to show. Results are shown with their calls, if these are loaded. Of deleted rows, only the places in `told`
 * are shown.
 */
export function shown(rows: Row[], told: { has: (order: number) => boolean } = new Set()): Row[] {
  const called = new Set(rows.flatMap((row) => row.calls.map((call) => call.id)));
  return rows.filter((row) =>
    row.kind === "gone" ? told.has(row.order) : row.kind !== "message" || row.role !== "tool" || row.results.some((result) => !called.has(result.call)),
  );
}
