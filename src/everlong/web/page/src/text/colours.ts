/** Colours of code: highlight.js, loaded when the first code is shown; rarer languages in a second part. */
import { escapeHtml } from "./html";

const PLAIN = new Set(["", "text", "txt", "plain", "plaintext", "log", "output", "none"]);
const RARE = new Set(
  (
    "apache awk clojure clj cmake coffeescript crystal d dart delphi pascal django jinja dockerfile docker elixir ex elm " +
    "erlang erl fortran f90 fsharp fs gherkin glsl gradle groovy haml handlebars hbs haskell hs http https julia jl latex " +
    "tex lisp matlab nginx nim nix objectpascal ocaml ml pgsql postgres postgresql powershell ps1 pwsh prolog properties " +
    "protobuf proto puppet qml reasonml sas scala scheme stan stylus tcl thrift twig verilog sv vhdl vim x86asm asm"
  ).split(" "),
);
const LONGEST = 60_000; // letters; beyond it colour is not worth the time
const SPANS = /<span class="[\w\s-]*">|<\/span>/g;

type Painter = (code: string, language: string) => string | null;
let common: Painter | null = null;
let rare: Painter | null = null;
let loading: { common?: Promise<unknown>; rare?: Promise<unknown> } = {};

/** Load the colours of a language. -> whether it has any */
export async function loadColours(language: string): Promise<boolean> {
  const name = language.toLowerCase();
  if (PLAIN.has(name)) return false;
  try {
    await (loading.common ??= import("./paint").then((module) => (common = module.paint)));
    if (RARE.has(name)) await (loading.rare ??= import("./paintRare").then((module) => (rare = module.paint)));
    return true;
  } catch {
    loading = {}; // the next code tries again
    return false;
  }
}

/** Code as HTML with its colours; null if they are not loaded, not known or not worth it. */
export function paint(code: string, language: string): string | null {
  const name = language.toLowerCase();
  if (PLAIN.has(name) || code.length > LONGEST) return null;
  const html = (RARE.has(name) ? rare : common)?.(code, name) ?? null;
  return html !== null && addsOnlySpans(html, code) ? html : null;
}

/** Whether HTML is the code itself with colours and nothing else. */
export function addsOnlySpans(html: string, code: string): boolean {
  return html.replace(SPANS, "").replaceAll("&#x27;", "&#39;") === escapeHtml(code);
}
