/** Finding the compactions of a thread. */
import { api, type Row } from "../api";

const PAGE = 500;

/** The compactions of a thread, by summary or by rules, newest first; stops as soon as `count` are found. */
export async function pointsOf(thread: string, count: number): Promise<Row[]> {
  const found: Row[] = [];
  let before: number | undefined;
  for (;;) {
    const got = await api.rows(thread, { before, limit: PAGE });
    found.unshift(...got.rows.filter((row) => row.kind === "summary" || row.kind === "cut"));
    if (got.first || got.rows.length === 0 || found.length >= count) return found.reverse();
    before = got.rows[0].order;
  }
}
