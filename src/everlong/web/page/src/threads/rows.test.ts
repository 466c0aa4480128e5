import { expect, it } from "vitest";
import type { Folder, Thread } from "../api";
import { HEIGHTS, inView, linesOf, type Line } from "./rows";

const NOW = new Date("2026-03-18T12:00:00");
const thread = (id: string, days = 0) =>
  ({ id, title: id, updated: new Date(NOW.getTime() - days * 86_400_000).toISOString() }) as unknown as Thread;
const folder = (name: string, count: number, threads: Thread[] = []): Folder => ({ name, count, threads });
const told = (line: Line) =>
  line.kind === "heading" ? `# ${line.label}` : line.kind === "folder" ? `> ${line.folder.name}` : line.kind === "thread" ? line.thread.id : line.kind;

it("shows pinned threads, folders with what is in the open ones, and the others by age", () => {
  const lines = linesOf(
    {
      pinned: [thread("p")],
      folders: [folder("Air", 0), folder("Sea", 3, [thread("s1"), thread("s2")]), folder("Shut", 9)],
      list: [thread("a"), thread("b", 1)],
      open: new Set(["Air", "Sea"]),
      more: true,
    },
    NOW,
  );
  expect(lines.map(told)).toEqual([
    "# threads.pinned", "p", "# threads.folders", "> Air", "note", "> Sea", "s1", "s2", "more", "> Shut",
    "# threads.today", "a", "# threads.yesterday", "b", "more",
  ]);
});

it("draws what is in view, however many there are, and keeps the height of the rest", () => {
  const list = Array.from({ length: 5_000 }, (_, at) => thread(`t${at}`, at));
  const lines = linesOf({ pinned: [], folders: [], list, open: new Set(), more: false }, NOW);
  const whole = lines.reduce((sum, line) => sum + HEIGHTS.mouse[line.kind], 0);
  for (const top of [0, 900, 90_000, whole - 600, whole + 5_000]) {
    const { runs, above, below } = inView(lines, HEIGHTS.mouse, top, 600);
    const drawn = runs.flatMap((run) => run.lines);
    expect(drawn.length).toBeLessThan(60);
    expect(above + below + drawn.reduce((sum, line) => sum + HEIGHTS.mouse[line.kind], 0)).toBe(whole);
    if (top + 600 <= whole) expect([above <= top, whole - below >= top + 600]).toEqual([true, true]);
  }
  expect(inView([], HEIGHTS.mouse, 0, 600)).toEqual({ runs: [], above: 0, below: 0 });
});
