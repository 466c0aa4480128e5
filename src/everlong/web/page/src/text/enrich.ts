/** Fills the places that the parser marked in a block: formulas, code within lists, tables that scroll, footnotes. */
import { copyText } from "../pieces/clipboard";
import { t } from "../words";
import { loadColours, paint } from "./colours";
import { Formulas } from "./formulas";
import { nameIn } from "./notes";

const TOLD_FOR = 1_500; // milliseconds

interface Given {
  /** Changes when the HTML is replaced. */
  html: string;
  numbers: Map<string, number>;
  onnote: (name: string) => void;
}

/** To be used on the element that holds the HTML. */
export function enrich(block: HTMLElement, given: Given): { update: (now: Given) => void } {
  const formulas = new Formulas();
  const names = new WeakMap<Element, string>();
  let last: Given | null = null;
  const fill = (now: Given) => {
    // Called for every block whenever one of them grows; only that one has anything to do.
    if (last?.html === now.html && last.numbers === now.numbers) return;
    last = now;
    const { numbers, onnote } = now;
    formulas.fill(block);
    block.querySelectorAll<HTMLElement>(".table:not([tabindex])").forEach(scrolls);
    block.querySelectorAll<HTMLElement>("pre:not([tabindex])").forEach(code);
    for (const place of block.querySelectorAll<HTMLElement>("sup.reference")) {
      const name = names.get(place) ?? nameIn(place.textContent ?? "");
      const number = numbers.get(name);
      if (number === undefined || (names.has(place) && place.textContent === String(number))) continue;
      names.set(place, name);
      place.replaceChildren(button(String(number), t("chat.note", { number }), () => onnote(name)));
    }
  };
  fill(given);
  return { update: fill };
}

/** Make a table that scrolls sideways reachable by key. */
function scrolls(table: HTMLElement) {
  table.tabIndex = 0;
  table.setAttribute("role", "group");
  table.setAttribute("aria-label", t("chat.table"));
}

function code(pre: HTMLElement) {
  pre.tabIndex = 0;
  const inside = pre.querySelector<HTMLElement>("code");
  if (!inside) return;
  const text = inside.textContent ?? "";
  const language = inside.className;
  const colour = () => {
    const html = paint(text, language);
    if (html !== null) inside.innerHTML = html;
    return html !== null;
  };
  if (!colour()) void loadColours(language).then((loaded) => loaded && colour());
  const copy = button(t("chat.copy"), t("chat.copy.code"), async () => {
    if (!(await copyText(text))) return;
    copy.textContent = t("chat.copied");
    setTimeout(() => (copy.textContent = t("chat.copy")), TOLD_FOR);
  });
  copy.className = "copy-inner";
  pre.append(copy);
}

function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = label;
  made.setAttribute("aria-label", label);
  made.onclick = act;
  return made;
}
