/**
 * A model's Markdown as safe blocks.
 *
 * A block is drawn only once: a growing text changes only its last block. Formulas, code and footnotes become marked
 * places that the page fills once it has loaded what it needs for them.
 */
import { Marked, type Token, type Tokens } from "marked";
import { formula, formulaBlock } from "./formulaTokens";
import { escapeHtml, linkHtml } from "./html";
import { note, reference, type Note } from "./notes";
import { LINK, safe } from "./safe";
import { saidParts } from "./said";

export type Block =
  | { kind: "html"; html: string; /** Names of the notes it refers to. */ refers: string[] }
  /** A person's own words, with their spaces and line ends. */
  | { kind: "said"; html: string }
  | { kind: "code"; language: string; text: string; /** More of it may come. */ open: boolean }
  | { kind: "note"; name: string; html: string };

const FENCE_END = /\n {0,3}(?:`{3,}|~{3,})[ \t]*\n*$/;

const parser = new Marked({
  gfm: true,
  extensions: [
    note,
    reference,
    formulaBlock,
    formula,
  ],
  renderer: {
    // HTML is shown as it was written.
    html: ({ text }) => escapeHtml(text),
    // Loading a picture would tell another host who reads it; it becomes a link that the reader may follow.
    image: ({ href, text }) => link(href, escapeHtml(text || href)),
    link(token) {
      return link(token.href, this.parser.parseInline(token.tokens));
    },
    code: ({ text, lang }) => `<pre><code class="${escapeHtml(languageOf(lang))}">${escapeHtml(text)}</code></pre>`,
    checkbox: ({ checked }) => `<span class="task">${checked ? "☑" : "☐"}</span> `,
  },
});
const drawTable = parser.Renderer.prototype.table;
parser.use({
  renderer: {
    table(token) {
      return `<div class="table">${drawTable.call(this, token)}</div>`;
    },
  },
});

function link(href: string, inner: string): string {
  return LINK.test(href.trim()) ? linkHtml(href, inner) : inner;
}

function languageOf(info: string | undefined): string {
  return (info ?? "").split(/[\s{,]/)[0];
}

function blockOf(token: Token, open = false): Block {
  if (token.type === "code") {
    const code = token as Tokens.Code;
    return { kind: "code", language: languageOf(code.lang), text: code.text, open: open && !FENCE_END.test(code.raw) };
  }
  const html = safe(parser.parser([token]));
  if (token.type === "note") return { kind: "note", name: (token as Note).name, html };
  return { kind: "html", html, refers: referencesIn(token) };
}

function referencesIn(token: Token): string[] {
  const names: string[] = [];
  parser.walkTokens([token], (one) => {
    if (one.type === "reference") names.push((one as Tokens.Generic).name);
  });
  return names;
}

const seen = (token: Token) => token.type !== "space" && token.type !== "def";

/** A whole text as blocks. */
export function blocksOf(text: string): Block[] {
  return parser.lexer(text).filter(seen).map((token) => blockOf(token));
}

/** What a person wrote, as blocks. */
export function blocksOfSaid(text: string): Block[] {
  return saidParts(text).map((part) => {
    if (part.kind === "code") return { ...part, language: languageOf(part.language), open: false };
    if (part.kind === "prose") return { kind: "said", html: safe(part.html) };
    return blocksOf(part.text)[0];
  });
}

const NO_NOTES = new Map<string, number>();

/** The number of each footnote, by its name, in the order in which they are first referred to. */
export function noteNumbers(blocks: Block[]): Map<string, number> {
  const known = new Set(blocks.flatMap((block) => (block.kind === "note" ? [block.name] : [])));
  if (!known.size) return NO_NOTES;
  const numbers = new Map<string, number>();
  const referred = blocks.flatMap((block) => (block.kind === "html" ? block.refers : []));
  for (const name of [...referred, ...known]) {
    if (known.has(name) && !numbers.has(name)) numbers.set(name, numbers.size + 1);
  }
  return numbers;
}

/**
 * A text that grows: only its open end is parsed again.
 *
 * The last block (with the blank lines after it) stays open, because it may continue; those before it never change.
 */
export class Growing {
  #done: Block[] = [];
  #upTo = 0;
  #text = "";

  /** How much of the text is parsed each time. */
  get openLength(): number {
    return this.#text.length - this.#upTo;
  }

  /** The blocks of `text`, which is usually the last text with more at its end. */
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
    // The lexer rewrites tabs and line ends. If its text no longer matches ours, no block is closed.
    const known = length && text.startsWith(closed.map((token) => token.raw).join(""), this.#upTo);
    if (known) {
      this.#done = [...this.#done, ...closed.filter(seen).map((token) => blockOf(token))];
      this.#upTo += length;
    }
    const rest = known ? tokens.slice(open) : tokens;
    return [...this.#done, ...rest.filter(seen).map((token) => blockOf(token, token === tokens[open]))];
  }
}

const KEPT = 400; // texts whose blocks are kept, so that scrolling back does not parse again
const kept = new Map<string, Block[]>();

/** The blocks of a complete text, remembered. */
export function keptBlocks(text: string, said: boolean): Block[] {
  const key = `${said ? "said" : "given"} ${text}`;
  let blocks = kept.get(key);
  if (!blocks) {
    blocks = said ? blocksOfSaid(text) : blocksOf(text);
    if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
    kept.set(key, blocks);
  }
  return blocks;
}
