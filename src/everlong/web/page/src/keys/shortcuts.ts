/** The shortcuts of the page: what each is called, how it is written, and which key event it is. Pure. */
import type { Key } from "../words";

export type Shortcut =
  | "new"
  | "search"
  | "next"
  | "previous"
  | "focus"
  | "copy_answer"
  | "copy_code"
  | "panel"
  | "sidebar"
  | "settings"
  | "help";

interface Combination {
  /** The place of the key on the keyboard (KeyboardEvent.code), or its letter if only that identifies it. */
  code?: string;
  key?: string;
  alt?: boolean;
  shift?: boolean;
  /** Ctrl, or Cmd on a Mac. */
  command?: boolean;
}

/** The parts of a key event that matter here. */
export interface Press {
  code: string;
  key: string;
  altKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  isComposing: boolean;
}

// Alt and letters, because browsers keep most of Ctrl to themselves: in most of them, a tab never gets Ctrl+N.
const TABLE: Record<Shortcut, Combination[]> = {
  new: [{ code: "KeyN", alt: true }, { code: "KeyN", command: true }],
  search: [{ code: "KeyK", command: true }],
  next: [{ code: "ArrowDown", alt: true }],
  previous: [{ code: "ArrowUp", alt: true }],
  focus: [{ code: "KeyM", alt: true }],
  copy_answer: [{ code: "KeyC", alt: true, shift: true }],
  copy_code: [{ code: "KeyK", alt: true, shift: true }],
  panel: [{ code: "KeyP", alt: true }],
  sidebar: [{ code: "KeyS", alt: true }],
  settings: [{ code: "Comma", command: true }],
  help: [{ key: "?" }, { code: "Slash", command: true }],
};

export const SHORTCUTS = Object.keys(TABLE) as Shortcut[];

/** The words of a shortcut. */
export const label = (shortcut: Shortcut): Key => `keys.${shortcut}`;

/**
 * The shortcut that was pressed.
 *
 * In a text field, a key that writes something is not a shortcut: a plain "?", and on a Mac every letter with Alt.
 * AltGr is Ctrl and Alt together, and never a shortcut.
 */
export function shortcutOf(press: Press, typing: boolean, mac: boolean): Shortcut | null {
  if (press.isComposing || (press.ctrlKey && press.altKey)) return null;
  return SHORTCUTS.find((shortcut) => TABLE[shortcut].some((one) => fits(one, press, typing, mac))) ?? null;
}

function fits(one: Combination, press: Press, typing: boolean, mac: boolean): boolean {
  const command = mac ? press.metaKey : press.ctrlKey;
  const other = mac ? press.ctrlKey : press.metaKey;
  if (other || command !== (one.command ?? false) || press.altKey !== (one.alt ?? false)) return false;
  if (typing && !one.command && (!one.alt || mac)) return false;
  if (one.key) return press.key === one.key;
  return press.code === one.code && press.shiftKey === (one.shift ?? false);
}

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Comma: ",", Slash: "/" };

/** How the combinations of a shortcut are written.  "new" -> [["Alt", "N"], ["Ctrl", "N"]] */
export function written(shortcut: Shortcut, mac: boolean): string[][] {
  return TABLE[shortcut].map((one) => [
    ...(one.command ? [mac ? "⌘" : "Ctrl"] : []),
    ...(one.alt ? [mac ? "⌥" : "Alt"] : []),
    ...(one.shift ? [mac ? "⇧" : "Shift"] : []),
    one.key ?? NAMES[one.code ?? ""] ?? (one.code ?? "").replace("Key", ""),
  ]);
}

/** The last piece of code in an answer; null if it has none.  "a\n```js\nf()\n```" -> "f()" */
export function lastCode(text: string): string | null {
  const blocks = [...text.matchAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n([\s\S]*?)(?:\n {0,3}\1[`~]*[ \t]*$|(?![\s\S]))/gm)];
  return blocks.at(-1)?.[2].replace(/\n$/, "") ?? null;
}
