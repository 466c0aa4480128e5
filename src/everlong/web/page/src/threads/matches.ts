/** Finds the words of a search in a text. Pure. */
export interface TextPiece {
  text: string;
  hit: boolean;
}

const LEAD = 30; // letters kept before the first match, so that it is in view

/** The text in pieces, the matches marked, from a little before the first match.  ("say hi", "hi") -> "say ", [hi] */
export function marked(text: string, words: string): TextPiece[] {
  const terms = words.trim().split(/\s+/).filter(Boolean).map(escaped);
  if (!terms.length) return [{ text, hit: false }];
  const pattern = new RegExp(`(${terms.join("|")})`, "gi");
  const first = text.search(pattern);
  const from = first > LEAD ? first - LEAD : 0;
  const seen = (from ? "…" : "") + text.slice(from);
  return seen
    .split(pattern)
    .map((piece, index) => ({ text: piece, hit: index % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}

function escaped(term: string): string {
  return term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
