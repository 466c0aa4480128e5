/** A small highlighter: comments, strings, numbers and common words; the same for every language. Pure. */

const WORDS =
  "abstract and as assert async await break case catch class const continue def default defer del do elif else enum " +
  "except export extends extern False final finally fn for from func function global go if impl implements import in " +
  "interface is lambda let loop match mod module mut new nil None not null or package pass private protected pub public " +
  "raise return self select static struct super switch this throw trait True true false try type typeof undefined use " +
  "using var void where while with yield SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE JOIN ON AND OR NOT GROUP BY " +
  "ORDER LIMIT INTO VALUES SET then fi done esac echo";
const WORD = new Set(WORDS.split(" "));
const PLAIN = new Set(["text", "txt", "plain", "plaintext", "log", "output", "console", "markdown", "md"]);
const HASH_IS_A_NOTE = new Set(
  "py python sh bash shell zsh rb ruby yaml yml toml ini conf r perl make makefile dockerfile elixir ex nix".split(" "),
);

const NOTE = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|<!--[\s\S]*?(?:-->|$)`;
const REST = String.raw`(?<string>"""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|${"`"}(?:\\.|[^${"`"}\\])*${"`"})|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)`;
const SLASHES = new RegExp(`(?<note>${NOTE})|${REST}`, "g");
const HASHES = new RegExp(`(?<note>#[^\\n]*)|${REST}`, "g");
const LONGEST = 60_000; // letters; beyond it colour is not worth the time

/** Text as HTML that shows just this text.  "<b>" -> "&lt;b&gt;" */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** Code as safe HTML with spans of class note, string, number and word. */
export function highlight(code: string, language: string): string {
  const name = language.toLowerCase();
  if (!name || PLAIN.has(name) || code.length > LONGEST) return escapeHtml(code);
  let html = "";
  let last = 0;
  for (const match of code.matchAll(HASH_IS_A_NOTE.has(name) ? HASHES : SLASHES)) {
    const kind = kindOf(match);
    if (!kind) continue;
    html += `${escapeHtml(code.slice(last, match.index))}<span class="${kind}">${escapeHtml(match[0])}</span>`;
    last = match.index + match[0].length;
  }
  return html + escapeHtml(code.slice(last));
}

function kindOf(match: RegExpExecArray): string | null {
  const found = match.groups ?? {};
  if (found.note !== undefined) return "note";
  if (found.string !== undefined) return "string";
  if (found.number !== undefined) return "number";
  return WORD.has(match[0]) ? "word" : null;
}
