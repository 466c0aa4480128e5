/** Footnotes: `[^name]` refers to a note, `[^name]: …` at the beginning of a line is one. Extensions of marked. */
import type { TokenizerAndRendererExtension, Tokens } from "marked";
import { escapeHtml } from "./html";

const NOTE = /^\[\^([^\]\s]{1,60})\]:[ \t]*([^\n]*(?:\n(?:[ \t]+\S|(?!\[\^)\S)[^\n]*)*)(?:\n|$)/;
const REFERENCE = /^\[\^([^\]\s]{1,60})\](?!:)/;

export interface Note extends Tokens.Generic {
  type: "note";
  name: string;
}

export const note: TokenizerAndRendererExtension = {
  name: "note",
  level: "block",
  start: (text) => text.indexOf("\n[^") + 1 || undefined, // a note ends the paragraph before it
  tokenizer(text) {
    const found = NOTE.exec(text);
    if (!found) return undefined;
    const inside = found[2].replace(/^[ \t]{1,4}/gm, "");
    return { type: "note", raw: found[0], name: found[1], tokens: this.lexer.blockTokens(inside, []) };
  },
  renderer(token) {
    return this.parser.parse(token.tokens ?? []);
  },
};

/** Shown as it was written until its note is known: it may be just a name in brackets. */
export const reference: TokenizerAndRendererExtension = {
  name: "reference",
  level: "inline",
  start: (text) => text.indexOf("[^"),
  tokenizer(text) {
    const found = REFERENCE.exec(text);
    return found ? { type: "reference", raw: found[0], name: found[1] } : undefined;
  },
  renderer: (token) => `<sup class="reference">${escapeHtml(token.raw)}</sup>`,
};

/** The name in a reference as it was written.  "[^a]" -> "a" */
export function nameIn(raw: string): string {
  return REFERENCE.exec(raw)?.[1] ?? "";
}
