/** Figures as the reader writes them: shares, money, spans of time and days. All by Intl, in the language in use. */
import { speech } from "../words/language.svelte";

/** A share of a whole.  0.353 -> "35.3%", 0.6 -> "60%" */
export function percent(share: number, digits = 1): string {
  return new Intl.NumberFormat(speech.now, { style: "percent", maximumFractionDigits: digits }).format(share);
}

/** An amount of dollars; cents that matter stay visible.  12.5 -> "$12.50", 0.0042 -> "$0.0042" */
export function money(amount: number): string {
  const small = amount !== 0 && Math.abs(amount) < 0.1;
  return new Intl.NumberFormat(speech.now, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    maximumFractionDigits: small ? 4 : 2,
  }).format(amount);
}

/** A number in short form.  48213 -> "48K", in Chinese "4.8万" */
export function short(value: number): string {
  return new Intl.NumberFormat(speech.now, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** A span of time.  0.0023 -> "2.3ms", 4.2 -> "4.2s" */
export function span(seconds: number): string {
  const [value, unit] = seconds < 1 ? [seconds * 1_000, "millisecond"] : [seconds, "second"];
  return new Intl.NumberFormat(speech.now, {
    style: "unit",
    unit,
    unitDisplay: "narrow",
    maximumFractionDigits: 1,
  }).format(value);
}

/** A day of the usage figures.  "2026-05-03" -> "May 3" */
export function day(text: string): string {
  const at = new Date(`${text}T00:00:00`);
  return Number.isNaN(at.getTime()) ? text : at.toLocaleDateString(speech.now, { month: "short", day: "numeric" });
}

/** The time to the second, for requests that follow each other quickly. */
export function clock(at: Date): string {
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString(speech.now, { hour12: false });
}

/** The word of two that fits a count.  counted(1, "a_one", "a_other") -> "a_one" */
export function counted<K>(n: number, one: K, other: K): K {
  return n === 1 ? one : other;
}
