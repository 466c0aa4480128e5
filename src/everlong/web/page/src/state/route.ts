/** The places of the page, as they are written in the address after "#". */

export type Route =
  /** `wants`: the sample thread, or the page that says where answers come from. */
  | { page: "home"; wants?: "sample" | "sources" }
  /** `order`: a row to show; `point`: the thread as it was before the compaction at this row. */
  | { page: "thread"; id: string; order?: number; point?: number }
  /** `source`: one to change, with the focus in this field. */
  | { page: "settings"; source?: string; field?: string }
  | { page: "usage" }
  | { page: "live" }
  | { page: "keys" };

/** "#/t/abc/12" -> the thread abc at row 12;  "#/t/abc/before/40" -> abc before the compaction at row 40 */
export function readRoute(hash: string): Route {
  const [place, id, third, fourth] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (place === "settings" && id === "source" && third) return { page: place, source: third, field: fourth };
  if (place === "settings" || place === "usage" || place === "live" || place === "keys") return { page: place };
  if (place === "sample" || place === "sources") return { page: "home", wants: place };
  if (place !== "t" || !id) return { page: "home" };
  if (third === "before" && isOrder(fourth)) return { page: "thread", id, point: Number(fourth) };
  if (isOrder(third)) return { page: "thread", id, order: Number(third) };
  return { page: "thread", id };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray "%" typed into the address bar
  }
}

function isOrder(text: string | undefined): text is string {
  return text !== undefined && /^\d+$/.test(text);
}

export function threadHash(id: string, where: { order?: number; point?: number } = {}): string {
  const base = `#/t/${encodeURIComponent(id)}`;
  if (where.point !== undefined) return `${base}/before/${where.point}`;
  return where.order === undefined ? base : `${base}/${where.order}`;
}

/** The address of the settings in which a source is changed. */
export function sourceHash(source: string, field: "key" | "url"): string {
  return `#/settings/source/${encodeURIComponent(source)}/${field}`;
}

export function go(hash: string): void {
  if (location.hash !== hash) location.hash = hash;
}
