/**
 * Markdown of a model, made safe.
 *
 * Owns what a model's text may become: no HTML of its own, no pictures, no script, links only to the web and to mail.
 * Every piece of HTML passes DOMPurify last, whatever the parser did.
 */
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import { escapeHtml, highlight } from "./highlight";

export type Block = { kind: "html"; html: string } | { kind: "code"; language: string; text: string };

const LINK = /^(?:https?:|mailto:)/i;
const TAGS = [
  ..."a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul".split(" "),
];

const parser = new Marked({
  gfm: true,
  renderer: {
    // HTML is shown as it was written.
    html: ({ text }) => escapeHtml(text),
    // A picture of another host would tell it who reads; it becomes a link that the reader may follow.
    image: ({ href, text }) => link(href, escapeHtml(text || href)),
    link(token) {
      return link(token.href, this.parser.parseInline(token.tokens));
    },
    code: ({ text, lang }) => `<pre><code>${highlight(text, lang ?? "")}</code></pre>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function link(href: string, inner: string): string {
  if (!LINK.test(href.trim())) return inner;
  return `<a href="${escapeHtml(href)}" title="${escapeHtml(href)}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

function safe(html: string): string {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "title", "target", "rel", "class", "start", "align"],
    ALLOWED_URI_REGEXP: LINK,
    // Otherwise these are taken for addresses, found not to be any, and dropped.
    ADD_URI_SAFE_ATTR: ["target", "rel", "start", "align"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

function blockOf(token: Token): Block {
  if (token.type === "code") {
    const code = token as Tokens.Code;
    return { kind: "code", language: (code.lang ?? "").split(/\s/)[0], text: code.text };
  }
  return { kind: "html", html: safe(parser.parser([token])) };
}

const seen = (token: Token) => token.type !== "space" && token.type !== "def";

/** A whole text as blocks. */
export function blocksOf(text: string): Block[] {
  return parser.lexer(text).filter(seen).map(blockOf);
}

/**
 * A text that grows: only its open end is parsed again.
 *
 * The last block (with the blank lines after it) stays open, for it may go on; all before it never changes.
 */
export class Growing {
  #done: Block[] = [];
  #upTo = 0;
  #text = "";

  /** The blocks of `text`, which usually is the last text and more. */
  read(text: string): Block[] {
    if (!text.startsWith(this.#text)) {
      this.#done = [];
      this.#upTo = 0;
    }
    this.#text = text;
    const tokens = parser.lexer(text.slice(this.#upTo));
    let open = tokens.length - 1;
    while (open > 0 && !seen(tokens[open])) open -= 1;
    const closed = tokens.slice(0, open);
    const length = closed.reduce((sum, token) => sum + token.raw.length, 0);
    // The lexer rewrites tabs and line ends; where lengths no longer tell the place, nothing is closed.
    if (length && text.startsWith(closed.map((token) => token.raw).join(""), this.#upTo)) {
      this.#done = [...this.#done, ...closed.filter(seen).map(blockOf)];
      this.#upTo += length;
      return [...this.#done, ...tokens.slice(open).filter(seen).map(blockOf)];
    }
    return [...this.#done, ...tokens.filter(seen).map(blockOf)];
  }
}

const KEPT = 400; // texts whose blocks are kept, so that scrolling back does not parse again
const kept = new Map<string, Block[]>();

/** `blocksOf`, remembered. */
export function keptBlocks(text: string): Block[] {
  let blocks = kept.get(text);
  if (!blocks) {
    blocks = blocksOf(text);
    if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
    kept.set(text, blocks);
  }
  return blocks;
}
