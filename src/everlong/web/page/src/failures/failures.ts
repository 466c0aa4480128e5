/** What went wrong, in the reader's language: by the kind that the server names, with its figures. */
import type { Failure } from "../contract";
import { ApiError } from "../api";
import { t, type Key } from "../words";
import { en } from "../words/en";

/** The words for a kind; a general sentence for a kind that this page does not know. */
export function failureKey(kind: string): Key {
  const key = `failure.${kind}`;
  return Object.hasOwn(en, key) ? (key as Key) : "failure.other";
}

/** The text for a failed answer. */
export function told(failure: Failure): string {
  const { source, model, address } = failure;
  return t(failureKey(failure.kind), { source: source || model, model: model || source, address: address || source });
}

/** The text for a refused request.  ApiError(409, "running") -> "The model is already answering." */
export function explained(error: ApiError, fills: Record<string, string> = {}): string {
  return t(failureKey(error.kind), { source: "", model: "", address: "", ...fills });
}

const FEW = 20; // seconds to wait if the provider names none
const LONGEST = 300; // seconds; nobody sits through a longer wait

/** How long to wait before an automatic retry; null if there is none.  {after: 7.2} -> 8 */
export function waitFor(failure: Failure): number | null {
  if (!failure.actions.includes("wait")) return null;
  const seconds = Math.ceil(failure.after ?? FEW);
  return seconds <= LONGEST ? Math.max(1, seconds) : null;
}
