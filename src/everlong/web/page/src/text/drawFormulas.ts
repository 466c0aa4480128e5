/** KaTeX, its style and its fonts: loaded when the first formula is shown. */
import katex from "katex";
import style from "katex/dist/katex.min.css?inline";

const LIMITS = {
  trust: false, // no links, pictures, classes or styles from the author
  strict: false,
  throwOnError: true,
  maxSize: 20, // em
  maxExpand: 500, // macros that a formula may expand to
} as const;

// A sheet made by a script, because the policy of the page allows no other style.
const sheet = new CSSStyleSheet();
sheet.replaceSync(style);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

/** Draw a formula. Throws if it has an error. */
export function draw(tex: string, display: boolean): HTMLElement {
  const place = document.createElement("span");
  katex.render(tex, place, { ...LIMITS, displayMode: display });
  return place;
}
