/** The message that another part of the page wants to edit, by its order, until its row opens the editor. */
import type { Row } from "../api";
import { current } from "../state/current.svelte";

class Editing {
  asked = $state<number | null>(null);

  /** Edit the reader's last message. -> whether there is one */
  last(): boolean {
    const said = current.point === null ? current.shown.findLast((row) => row.kind === "message" && row.role === "user") : undefined;
    this.asked = said?.order ?? null;
    return said !== undefined;
  }

  /** Whether this row is to be edited; the request is then cleared. */
  takes(row: Row): boolean {
    if (this.asked !== row.order) return false;
    this.asked = null;
    return true;
  }
}

export const editing = new Editing();
