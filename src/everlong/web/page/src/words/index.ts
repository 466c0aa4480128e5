/**
 * Every word the reader sees, in the language in use.
 *
 * `t("threads.new")` gives the text of a key, and follows a change of the language.
 * `t("chat.tokens", { before: 9, after: 3 })` fills `{before}` and `{after}`.
 * A language is one table (en.ts, zh.ts) and a row in tables.ts.
 */
import type { Key } from "./en";
import { speech } from "./language.svelte";

export type { Key };

/** The text of a key in the language in use, with its places filled. */
export function t(key: Key, fills: Record<string, string | number> = {}): string {
  return speech.table[key].replace(/\{(\w+)\}/g, (place, name: string) => String(fills[name] ?? place));
}

/** A number as the reader writes it.  12345 -> "12,345" */
export function number(value: number): string {
  return new Intl.NumberFormat(speech.now).format(value);
}

/** A count of tokens, short.  950 -> "950", 12345 -> "12.3k", 1200000 -> "1.2M" */
export function tokens(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  if (value < 999_500) return `${trimmed(value / 1_000)}k`;
  return `${trimmed(value / 1_000_000)}M`;
}

function trimmed(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, "");
}

/** A moment (ISO text or seconds since 1970) as a date. */
export function moment(time: string | number): Date {
  return typeof time === "number" ? new Date(time * 1_000) : new Date(time);
}

/** The hour today, else the day.  -> "14:05", "3 May", "3 May 2024" */
export function when(time: string | number): string {
  const at = moment(time);
  if (Number.isNaN(at.getTime())) return "";
  const now = new Date();
  if (at.toDateString() === now.toDateString()) {
    return at.toLocaleTimeString(speech.now, { hour: "2-digit", minute: "2-digit" });
  }
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return at.toLocaleDateString(speech.now, { day: "numeric", month: "short", year });
}

/** The full date and hour, for titles. */
export function exactly(time: string | number): string {
  const at = moment(time);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleString(speech.now);
}
