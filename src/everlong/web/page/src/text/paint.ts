/** highlight.js with the languages that most code is in. */
import hljs from "highlight.js/lib/common";

/** Code as HTML with spans; null for a language that is not here. */
export function paint(code: string, language: string): string | null {
  return hljs.getLanguage(language) ? hljs.highlight(code, { language, ignoreIllegals: true }).value : null;
}
