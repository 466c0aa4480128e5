/**
 * Styles what a person wrote as Markdown, without losing a letter of it. Pure.
 *
 * People paste code, logs and letters: "*args", "2*3*4", "<div>", "# a note", four spaces. So prose keeps every letter,
 * space and line; where Markdown is meant, its style is added and the typed signs stay. Only fences and tables, which
 * nobody types by chance, become blocks.
 */
import { escapeHtml, formulaHtml, linkHtml } from "./html";
import { formulaAt, type Formula } from "./maths";

export type SaidPart =
  | { kind: "prose"; html: string }
  | { kind: "code"; language: string; text: string }
  | { kind: "table"; text: string };

const LONGEST = 100_000; // letters; beyond it the style is not worth the time
const MOST_FORMULA_LINES = 60;
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const DIVIDER = /^ {0,3}\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;

/** A text as parts, in their order. */
export function saidParts(text: string): SaidPart[] {
  if (text.length > LONGEST) return [{ kind: "prose", html: escapeHtml(text) }];
  const lines = text.split("\n");
  const parts: SaidPart[] = [];
  let prose: string[] = [];
  const endProse = () => {
    // Blank lines after a block are the block's own space.
    while (prose.length && !prose[0].trim() && parts.length) prose.shift();
    const joined = prose.join("\n");
    if (joined.trim()) parts.push({ kind: "prose", html: proseHtml(joined) });
    prose = [];
  };
  for (let at = 0; at < lines.length; ) {
    const fence = FENCE.exec(lines[at]);
    const end = fence ? fenceEnd(lines, at, fence[2]) : at;
    const rows = fence ? 0 : tableRows(lines, at);
    const formula = formulaLines(lines, at);
    if (fence && end > at) {
      endProse();
      const inside = lines.slice(at + 1, end).map((line) => line.replace(new RegExp(`^ {0,${fence[1].length}}`), ""));
      parts.push({ kind: "code", language: fence[3].trim(), text: inside.join("\n") });
      at = end + 1;
    } else if (rows) {
      endProse();
      parts.push({ kind: "table", text: lines.slice(at, at + rows).join("\n") });
      at += rows;
    } else if (formula) {
      endProse();
      parts.push({ kind: "prose", html: formulaHtml(formula.raw, formula.display) });
      at += formula.raw.split("\n").length;
    } else {
      prose.push(lines[at]);
      at += 1;
    }
  }
  while (prose.length && !prose[prose.length - 1].trim() && parts.length) prose.pop();
  endProse();
  return parts;
}

/** The line that closes a fence; the line itself if none does, because then it is not a fence. */
function fenceEnd(lines: string[], at: number, sign: string): number {
  const closing = new RegExp(`^ {0,3}${sign[0]}{${sign.length},}[ \\t]*$`);
  const found = lines.findIndex((line, index) => index > at && closing.test(line));
  return found < 0 ? at : found;
}

/** A formula over several whole lines. */
function formulaLines(lines: string[], at: number): Formula | null {
  if (!/^(?:\$\$|\\\[)/.test(lines[at])) return null;
  const near = lines.slice(at, at + MOST_FORMULA_LINES).join("\n");
  const formula = formulaAt(near);
  return formula?.raw.includes("\n") && /^(?:\n|$)/.test(near.slice(formula.raw.length)) ? formula : null;
}

function cells(line: string): number {
  return line.trim().replace(/^\||\|$/g, "").replace(/\\\||`[^`]*`/g, "").split("|").length;
}

/** How many lines from here on are a table. Each must have as many cells as the head, or a cell would be lost. */
function tableRows(lines: string[], at: number): number {
  const divider = lines[at + 1];
  if (!lines[at].includes("|") || divider === undefined || !divider.includes("|") || !DIVIDER.test(divider)) return 0;
  const wanted = cells(lines[at]);
  if (cells(divider) !== wanted) return 0;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) {
    if (cells(lines[end]) !== wanted) return 0;
    end += 1;
  }
  return end - at;
}

const HEADING = /^(#{1,6} )(?=\S)/;
const QUOTE = /^(>+ ?)/;
const mark = (text: string) => `<span class="mark">${escapeHtml(text)}</span>`;

function proseHtml(text: string): string {
  const lines = text.split("\n");
  const dressed: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    const alone = !lines[at - 1]?.trim() && !lines[at + 1]?.trim(); // otherwise it may be a comment in code
    const heading = alone ? HEADING.exec(line) : null;
    const quote = QUOTE.exec(line);
    if (heading) dressed.push(`<strong>${mark(heading[1])}${inlineHtml(line.slice(heading[1].length))}</strong>`);
    else if (quote) dressed.push(`<span class="quote">${mark(quote[1])}${inlineHtml(line.slice(quote[1].length))}</span>`);
    else dressed.push(inlineHtml(line));
  }
  return dressed.join("\n");
}

const STRONG = /\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w*])/y;
const EMPHASIS = /\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])/y;
const DELETED = /~~(?=[^\s~])([^~\n]*[^\s~])~~(?![\w~])/y;
const ADDRESS = /https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*。，；：！？）】』」]/y;
const NEXT = /[`*~$\\]|https?:\/\//g;

/** One line of prose as HTML with exactly the same text. */
function inlineHtml(line: string): string {
  let html = "";
  let last = 0;
  NEXT.lastIndex = 0;
  for (let found = NEXT.exec(line); found; found = NEXT.exec(line)) {
    const at = found.index;
    const dressed = dressedAt(line, at);
    if (!dressed) {
      NEXT.lastIndex = at + found[0].length;
      continue;
    }
    html += escapeHtml(line.slice(last, at)) + dressed.html;
    last = NEXT.lastIndex = at + dressed.length;
  }
  return html + escapeHtml(line.slice(last));
}

function dressedAt(line: string, at: number): { html: string; length: number } | null {
  const inWord = at > 0 && /[\w*~$\\]/.test(line[at - 1]);
  const matched = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return pattern.exec(line);
  };
  const wrapped = (found: RegExpExecArray, sign: string, tag: string, inside: string) => ({
    html: `<${tag}>${mark(sign)}${inside}${mark(sign)}</${tag}>`,
    length: found[0].length,
  });
  let found: RegExpExecArray | null;
  if ((found = matched(ADDRESS))) return { html: linkHtml(found[0], escapeHtml(found[0])), length: found[0].length };
  if (line[at] === "`") return codeAt(line, at);
  if (inWord) return null;
  if ((found = matched(STRONG))) return wrapped(found, "**", "strong", escapeHtml(found[1]));
  if ((found = matched(EMPHASIS))) return wrapped(found, "*", "em", escapeHtml(found[1]));
  if ((found = matched(DELETED))) return wrapped(found, "~~", "del", escapeHtml(found[1]));
  const formula = formulaAt(line.slice(at));
  if (formula && /\w/.test(line.charAt(at + formula.raw.length))) return null; // "$a,$b" of a shell
  return formula ? { html: formulaHtml(formula.raw, formula.display), length: formula.raw.length } : null;
}

/** Code between two equal runs of backticks. A run that is never closed is skipped as a whole. */
function codeAt(line: string, at: number): { html: string; length: number } {
  const run = (from: number) => {
    let end = from;
    while (line[end] === "`") end += 1;
    return end - from;
  };
  const sign = "`".repeat(run(at));
  const begin = at + sign.length;
  for (let close = line.indexOf(sign, begin); close > begin; close = line.indexOf(sign, close)) {
    const length = run(close);
    if (length === sign.length) {
      const html = `<code>${mark(sign)}${escapeHtml(line.slice(begin, close))}${mark(sign)}</code>`;
      return { html, length: close + length - at };
    }
    close += length;
  }
  return { html: sign, length: sign.length };
}
