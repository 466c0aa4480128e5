/** Several threads chosen at once, to be moved, archived, exported or deleted together. */
import { SvelteSet } from "svelte/reactivity";

class Chosen {
  /** Whether threads are being chosen: each line then has a box. */
  choosing = $state(false);
  readonly ids = new SvelteSet<string>();
  #last = "";

  begin(id = ""): void {
    this.choosing = true;
    if (id) this.toggle(id);
  }

  end(): void {
    this.choosing = false;
    this.ids.clear();
    this.#last = "";
  }

  toggle(id: string): void {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.#last = id;
  }

  /** Choose everything between the last one and this one, in the order of the list. */
  reach(id: string, order: string[]): void {
    const [from, to] = [order.indexOf(this.#last), order.indexOf(id)].sort((a, b) => a - b);
    if (from < 0) this.ids.add(id);
    else for (const one of order.slice(from, to + 1)) this.ids.add(one);
    this.#last = id;
  }
}

export const chosen = new Chosen();
