/** Puts drawn formulas in their places within a block. */
import { formulaAt } from "./maths";

let draw: typeof import("./drawFormulas").draw | null = null;
let loading: Promise<unknown> | null = null;

/**
 * Draws the formulas of a block. What it drew before is moved, not drawn again, because a growing paragraph is
 * rewritten with each word. A formula with an error keeps its source.
 */
export class Formulas {
  #drawn = new Map<string, Node[]>();

  fill(block: HTMLElement) {
    const places = [...block.querySelectorAll<HTMLElement>(".maths:not(.drawn)")];
    if (!places.length) return;
    if (!draw) {
      loading ??= import("./drawFormulas").then((module) => (draw = module.draw));
      loading.then(
        () => block.isConnected && this.fill(block),
        () => (loading = null), // the next formula tries again
      );
      return;
    }
    const before = this.#drawn;
    this.#drawn = new Map();
    for (const place of places) {
      const raw = place.textContent ?? "";
      const node = before.get(raw)?.shift() ?? drawn(raw, draw);
      place.classList.add("drawn");
      if (!node) continue;
      place.replaceChildren(node);
      this.#drawn.set(raw, [...(this.#drawn.get(raw) ?? []), node]);
    }
  }
}

function drawn(raw: string, by: NonNullable<typeof draw>): Node | null {
  const formula = formulaAt(raw);
  try {
    return formula && by(formula.tex, formula.display);
  } catch {
    return null; // an error in it: its source stays
  }
}
