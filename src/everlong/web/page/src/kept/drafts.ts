/**
 * The texts of drafts, one for each thread, in the browser's storage: they survive a reload and a closed tab.
 *
 * Each write has a stamp. A writer passes the stamp that it read last; if another tab has written since, nothing is
 * overwritten and the other draft is returned. Bounded: the oldest go first.
 */

export interface KeptDraft {
  text: string;
  /** The names of its attachments, which are in the database. */
  names: string[];
  at: number;
  stamp: string;
}

const PREFIX = "everlong.draft:";
export const LONGEST = 200_000; // characters of one draft
const MOST = 50; // drafts
const MOST_CHARACTERS = 1_000_000; // of all together
const OLDEST = 90 * 24 * 3_600_000; // milliseconds

type Written = { stamp: string } | { other: KeptDraft } | "too long" | "no room";

export function readDraft(thread: string): KeptDraft | null {
  return parsed(localStorage.getItem(PREFIX + thread));
}

/** Store a draft, or drop it if it is empty. `base` is the stamp that was read last, "" if there was none. */
export function writeDraft(thread: string, text: string, names: string[], base: string, now = Date.now()): Written {
  const stands = readDraft(thread);
  if (stands && stands.stamp !== base) return { other: stands };
  if (!text && !names.length) {
    localStorage.removeItem(PREFIX + thread);
    return { stamp: "" };
  }
  if (text.length > LONGEST) return "too long";
  const stamp = `${now.toString(36)}-${Math.random().toString(36).slice(2, 10)}`;
  const draft: KeptDraft = { text, names, at: now, stamp };
  prune(thread, text.length, now);
  try {
    localStorage.setItem(PREFIX + thread, JSON.stringify(draft));
  } catch {
    return "no room";
  }
  return { stamp };
}

export function forgetDraft(thread: string): void {
  localStorage.removeItem(PREFIX + thread);
}

/** Every draft with the thread that it belongs to ("" is a thread that is about to begin), the newest first. */
export function listDrafts(): { thread: string; draft: KeptDraft }[] {
  const found: { thread: string; draft: KeptDraft }[] = [];
  for (let index = 0; index < localStorage.length; index += 1) {
    const key = localStorage.key(index);
    const draft = key?.startsWith(PREFIX) ? parsed(localStorage.getItem(key)) : null;
    if (key && draft) found.push({ thread: key.slice(PREFIX.length), draft });
  }
  return found.sort((a, b) => b.draft.at - a.draft.at);
}

/** Call `hear` when another tab stores or drops a draft; null means all of them. */
export function onDraftElsewhere(hear: (thread: string | null) => void): void {
  addEventListener("storage", (event) => {
    if (event.key === null) hear(null);
    else if (event.key.startsWith(PREFIX)) hear(event.key.slice(PREFIX.length));
  });
}

/** Make room for one more draft of that length. */
function prune(thread: string, length: number, now: number): void {
  let count = 1;
  let characters = length;
  for (const { thread: other, draft } of listDrafts()) {
    if (other === thread) continue;
    count += 1;
    characters += draft.text.length;
    if (count > MOST || characters > MOST_CHARACTERS || now - draft.at > OLDEST) forgetDraft(other);
  }
}

function parsed(text: string | null): KeptDraft | null {
  if (!text) return null;
  try {
    const draft = JSON.parse(text) as Partial<KeptDraft>;
    if (typeof draft.text !== "string" || typeof draft.stamp !== "string" || !Array.isArray(draft.names)) return null;
    return { text: draft.text, names: draft.names.map(String), at: Number(draft.at) || 0, stamp: draft.stamp };
  } catch {
    return null; // not ours, or of another version
  }
}
