/** Deletes messages: what was deleted, how to restore it, and the question before a message is erased. */
import { api, type Row } from "../api";
import type { Item } from "../pieces/menu";
import { app } from "../state/app.svelte";
import { current } from "../state/current.svelte";
import { merge } from "../state/rows";
import { t } from "../words";

/** A deletion: the thread, the deleted row, all rows that were deleted with it, and how many were visible. */
interface Notice {
  thread: string;
  order: number;
  orders: number[];
  count: number;
}
const MOST_READ = 500; // rows of one request

class Deletion {
  /** Kept until the page is loaded again, or the reader dismisses them. */
  #notices = $state.raw<Notice[]>([]);
  /** The row that would be erased, while the reader is asked. */
  asked = $state.raw<Row | null>(null);

  here = $derived(new Map(this.#notices.filter((one) => one.thread === current.id).map((one) => [one.order, one])));

  /** The entries in the menu of a message. */
  items(row: Row): Item[] {
    if (row.role === "system") return [];
    const disabled = current.running;
    return [
      { label: t("deletion.delete"), icon: "trash", divided: true, disabled, act: () => void this.delete(row) },
      { label: t("deletion.erase"), icon: "trash", danger: true, disabled, act: () => (this.asked = row) },
    ];
  }

  async delete(row: Row): Promise<void> {
    const thread = current.id;
    if (!thread) return;
    await app.trying(async () => {
      const { orders } = await api.deleteRow(thread, row.order);
      const gone = new Set(orders);
      const count = Math.max(1, current.shown.filter((one) => one.kind === "message" && gone.has(one.order)).length);
      this.#notices = [...this.#notices, { thread, order: row.order, orders, count }];
      if (current.id === thread) await this.#went(orders);
    });
  }

  /** Restore a row and everything that was deleted with it. */
  async undo(order: number): Promise<void> {
    const thread = current.id;
    if (!thread) return;
    await app.trying(async () => {
      const { orders } = await api.restoreRow(thread, order);
      await this.#cameBack(thread, orders);
    });
  }

  async erase(): Promise<void> {
    const [row, thread] = [this.asked, current.id];
    this.asked = null;
    if (!row || !thread) return;
    await app.trying(async () => {
      const { orders } = await api.deleteRow(thread, row.order, true);
      this.dismiss(row.order);
      app.say(t("deletion.erased"));
      if (current.id === thread) await this.#went(orders);
    });
  }

  dismiss(order: number): void {
    this.#notices = this.#notices.filter((one) => one.thread !== current.id || one.order !== order);
  }

  /** This page or another one deleted something, or restored it. */
  heard(event: { type: "removed" | "restored"; orders: number[] }): void {
    const thread = current.id;
    if (!thread) return;
    if (event.type === "removed") void this.#went(event.orders);
    else void this.#cameBack(thread, event.orders);
  }

  async #went(orders: number[]): Promise<void> {
    const gone = new Set(orders);
    current.rows = current.rows.map((row) => (gone.has(row.order) ? emptied(row) : row));
    current.failure = null;
    await Promise.all([current.loadContext(), current.loadPins()]);
  }

  async #cameBack(thread: string, orders: number[]): Promise<void> {
    const back = new Set(orders);
    this.#notices = this.#notices.filter((one) => one.thread !== thread || !back.has(one.order));
    const [first, last] = [Math.min(...orders), Math.max(...orders)];
    const got = await api.rows(thread, { before: last + 1, limit: Math.min(last - first + 1, MOST_READ) });
    if (current.id !== thread) return;
    const known = current.rows[0]?.order ?? 0;
    current.rows = merge(current.rows, got.rows.filter((row) => row.order >= known));
    await Promise.all([current.refresh(), current.loadContext(), current.loadPins()]);
  }
}

/** A deleted row: only its place is left. */
function emptied(row: Row): Row {
  return { ...row, kind: "gone", text: "", thinking: "", images: [], calls: [], results: [], versions: null };
}

export const deletion = new Deletion();
