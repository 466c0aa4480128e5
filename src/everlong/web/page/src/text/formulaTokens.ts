/** Formulas within markdown, in a line and on lines of their own. Extensions of marked. */
import type { TokenizerAndRendererExtension } from "marked";
import { formulaHtml } from "./html";
import { formulaAt, formulaStart } from "./maths";

const OPENING = /^ {0,3}(?=\$\$|\\\[)/;

/** A formula on lines of its own: nothing in it is a list or a heading, whatever it looks like. */
export const formulaBlock: TokenizerAndRendererExtension = {
  name: "formulaBlock",
  level: "block",
  // It ends a paragraph. The text given here begins with the second letter of that paragraph.
  start: (text) => text.search(/\n {0,3}(?:\$\$|\\\[)/) + 1 || undefined,
  tokenizer(text) {
    const before = OPENING.exec(text);
    const found = before && formulaAt(text.slice(before[0].length));
    const after = found && /^[ \t]*(?:\n+|$)/.exec(text.slice(before[0].length + found.raw.length));
    if (!found || !after) return undefined;
    return { type: "formulaBlock", raw: before[0] + found.raw + after[0], formula: found };
  },
  renderer: (token) => `<p>${formulaHtml(token.formula.raw, token.formula.display)}</p>`,
};

export const formula: TokenizerAndRendererExtension = {
  name: "formula",
  level: "inline",
  start: (text) => formulaStart(text),
  tokenizer(text) {
    const found = formulaAt(text);
    return found ? { type: "formula", raw: found.raw, display: found.display } : undefined;
  },
  renderer: ({ raw, display }) => formulaHtml(raw, display),
};
