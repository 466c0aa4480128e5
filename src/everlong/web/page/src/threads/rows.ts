/** The sidebar's list as rows of known height, of which only those in view are drawn. Pure. */
import type { Folder, Thread } from "../api";
import { byAge, type Age } from "./ages";

/** A heading, a folder, a thread, a note, or the way to more of them. `group` is the heading that it is under. */
export type Line =
  | { kind: "heading"; group: string; label: "threads.pinned" | "threads.folders" | Age }
  | { kind: "folder"; group: string; folder: Folder; open: boolean }
  | { kind: "thread"; group: string; thread: Thread; inside: boolean }
  | { kind: "note"; group: string }
  | { kind: "more"; group: string; folder: string | null };

/** Lines of one group that follow each other. */
export interface Run {
  group: string;
  lines: Line[];
}

/** The heights of lines in pixels; a finger needs more. */
export const HEIGHTS = { mouse: { heading: 36, folder: 36, thread: 36, note: 32, more: 40 }, finger: { heading: 38, folder: 44, thread: 44, note: 36, more: 48 } };
export type Heights = (typeof HEIGHTS)["mouse"];

export interface Listed {
  pinned: Thread[];
  folders: Folder[];
  list: Thread[];
  open: ReadonlySet<string>;
  more: boolean;
}

/** Every line, from the top: pinned threads, folders (what is in the open ones), the others by age. */
export function linesOf(listed: Listed, now: Date): Line[] {
  const lines: Line[] = [];
  if (listed.pinned.length) {
    lines.push({ kind: "heading", group: "pinned", label: "threads.pinned" });
    for (const thread of listed.pinned) lines.push({ kind: "thread", group: "pinned", thread, inside: false });
  }
  if (listed.folders.length) lines.push({ kind: "heading", group: "folders", label: "threads.folders" });
  for (const folder of listed.folders) {
    const group = `folder:${folder.name}`;
    const open = listed.open.has(folder.name);
    lines.push({ kind: "folder", group, folder, open });
    if (!open) continue;
    for (const thread of folder.threads) lines.push({ kind: "thread", group, thread, inside: true });
    if (!folder.count) lines.push({ kind: "note", group });
    if (folder.threads.length < folder.count) lines.push({ kind: "more", group, folder: folder.name });
  }
  for (const { name, threads } of byAge(listed.list, now)) {
    lines.push({ kind: "heading", group: name, label: name });
    for (const thread of threads) lines.push({ kind: "thread", group: name, thread, inside: false });
  }
  if (listed.more) lines.push({ kind: "more", group: "more", folder: null });
  return lines;
}

const OVERSCAN = 12; // lines drawn above and below what is in view, so that arrows find the next one

/** The lines from `top` to `top + height`, some more around them, and the space that the others take. */
export function inView(lines: Line[], heights: Heights, top: number, height: number): { runs: Run[]; above: number; below: number } {
  const ends: number[] = [];
  let end = 0;
  for (const line of lines) ends.push((end += heights[line.kind]));
  const first = ends.findIndex((one) => one > top);
  const start = Math.max(0, (first < 0 ? lines.length : first) - OVERSCAN);
  const beyond = ends.findIndex((one) => one >= top + height);
  const stop = Math.min(lines.length, (beyond < 0 ? lines.length : beyond + 1) + OVERSCAN);
  const runs: Run[] = [];
  for (const line of lines.slice(start, stop)) {
    const last = runs.at(-1);
    if (last?.group === line.group) last.lines.push(line);
    else runs.push({ group: line.group, lines: [line] });
  }
  return { runs, above: start ? ends[start - 1] : 0, below: end - (stop ? ends[stop - 1] : 0) };
}
