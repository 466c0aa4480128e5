/** Which row the reader asks about. */
import { api, ApiError, type Row, type Why } from "../api";
import { explained } from "../failures/failures";
import { current } from "../state/current.svelte";

class Asked {
  row = $state.raw<Row | null>(null);
  answer = $state.raw<Why | null>(null);
  problem = $state("");

  async open(row: Row): Promise<void> {
    const thread = current.id;
    if (!thread) return;
    this.row = row;
    this.answer = null;
    this.problem = "";
    try {
      const answer = await api.why(thread, row.order);
      if (this.row === row) this.answer = answer;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (this.row === row) this.problem = explained(error);
    }
  }

  close(): void {
    this.row = null;
  }
}

export const why = new Asked();
