/** The words shown while an answer has not begun, so that dots never stand alone for long. Pure. */
import type { Key } from "../words";

/** The wait for an answer that has not begun. */
export interface Wait {
  /** Seconds since the request. */
  seconds: number;
  /** The tokens that were sent; 0 if unknown. */
  tokens: number;
  /** The seconds that this model needed before to read as many tokens; 0 if unknown. */
  about: number;
}

const PATIENT = 1; // seconds for which dots are enough
const SENT = 3; // from then on the model has the request, and reads
const LONG = 60;

/** The words for a wait; null while dots are enough. */
export function waitingFor({ seconds, tokens, about }: Wait): Key | null {
  if (seconds < PATIENT) return null;
  if (seconds >= Math.max(LONG, 3 * about)) return "waiting.long";
  if (!tokens) return "waiting.plain";
  if (seconds < SENT) return "waiting.sending";
  return about >= SENT ? "waiting.about" : "waiting.reading";
}

const KEY = "everlong.pace";
const LEAST = 2; // seconds; a shorter wait says nothing about reading

/** The measured tokens per second that each model reads; kept between visits. */
function paces(): Record<string, number> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, number>) : {};
  } catch {
    return {}; // not our value
  }
}

/** Note how long a model took to its first word. */
export function notePace(model: string, tokens: number, seconds: number): void {
  if (seconds < LEAST || !tokens) return;
  localStorage.setItem(KEY, JSON.stringify({ ...paces(), [model]: tokens / seconds }));
}

/** The seconds that a model is expected to need for so many tokens, from earlier waits; 0 if there were none. */
export function expected(model: string, tokens: number): number {
  const pace = Number(paces()[model]);
  return pace > 0 ? Math.round(tokens / pace) : 0;
}
