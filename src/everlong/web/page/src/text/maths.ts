/** Finds formulas in a text: $…$, $$…$$, \(…\), \[…\]. Prices and shell variables are not formulas. Pure. */

export interface Formula {
  /** As it was written, with its signs. */
  raw: string;
  tex: string;
  display: boolean;
}

const LONGEST = 4_000; // letters
const DOUBLE = /^\$\$((?:[^$\\`]|\\[\s\S]|\$(?!\$))+?)\$\$/;
const SINGLE = /^\$(?![\s$])((?:[^$\\`]|\\[\s\S])+?)\$/;
const SQUARE = /^\\\[([\s\S]+?)\\\]/;
const ROUND = /^\\\(([\s\S]+?)\\\)/;
const BLANK_LINE = /\n[ \t]*\n/;
const SIGNS = /[\\^_={}+<>|*/()-]/;
const WORD = /\p{L}{2,}/u;
const WORDS = /\p{L}{2,}[^\p{L}]+\p{L}{2,}/u;

/** The formula that a text begins with, null if it begins with none. */
export function formulaAt(text: string): Formula | null {
  const near = text.slice(0, LONGEST);
  for (const [pattern, display] of [[DOUBLE, true], [SQUARE, true], [ROUND, false]] as const) {
    const found = pattern.exec(near);
    if (found) return found[1].trim() && !BLANK_LINE.test(found[1]) ? { raw: found[0], tex: found[1].trim(), display } : null;
  }
  const found = SINGLE.exec(near);
  if (!found || !isFormula(found[1], near.charAt(found[0].length))) return null;
  return { raw: found[0], tex: found[1], display: false };
}

/** Whether the text between two dollars is meant as a formula, given the letter after it. */
function isFormula(inside: string, next: string): boolean {
  if (/\s$/.test(inside) || /\d/.test(next) || BLANK_LINE.test(inside)) return false; // "$5 and $6"
  if (/\w/.test(next) && /^[A-Za-z_]{2}/.test(inside)) return false; // "$HOME:$PATH"
  if (SIGNS.test(inside)) return !(/^\d/.test(inside) && WORDS.test(inside) && !/[\\^_={}]/.test(inside));
  return !WORDS.test(inside) && !(/^\d/.test(inside) && WORD.test(inside)); // "$5 or 6$", "$20 (twenty) or 30$"
}

/** Where the next formula may begin, -1 if nowhere. A dollar after a letter, a digit or a dollar does not begin one. */
export function formulaStart(text: string): number {
  return text.search(/(?<![\w$\\])\$|(?<!\\)\\[([]/);
}
