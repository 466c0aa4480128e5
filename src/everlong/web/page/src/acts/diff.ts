/** Diffs as they are read: lines with their tone and number, and diffs of two short texts. Pure. */

export interface Line {
  /** The line of the diff, with its sign. */
  text: string;
  tone: "" | "added" | "removed" | "place";
  /** The number in the new file, or in the old file for a removed line; null if it is unknown. */
  at: number | null;
}

export interface Diff {
  lines: Line[];
  added: number;
  removed: number;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const MOST_COMPARED = 400; // lines of each text that are compared one by one

/** Read a unified diff. Lines before the first hunk have no number. */
export function readDiff(text: string): Diff {
  let [old, now] = [NaN, NaN];
  const diff: Diff = { lines: [], added: 0, removed: 0 };
  const number = (at: number) => (Number.isNaN(at) ? null : at);
  for (const line of text.split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      diff.lines.push({ text: line, tone: "place", at: null });
    } else if (line.startsWith("+")) {
      diff.added += 1;
      diff.lines.push({ text: line, tone: "added", at: number(now++) });
    } else if (line.startsWith("-")) {
      diff.removed += 1;
      diff.lines.push({ text: line, tone: "removed", at: number(old++) });
    } else if (line.startsWith(" ")) {
      diff.lines.push({ text: line, tone: "", at: number(now++) });
      old += 1;
    } else {
      // A note, or omitted lines: the numbers of the following lines are unknown.
      if (line && !line.startsWith("\\")) [old, now] = [NaN, NaN];
      diff.lines.push({ text: line, tone: line.startsWith("\\") ? "place" : "", at: null });
    }
  }
  return diff;
}

const linesOf = (text: string) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** The diff of two whole texts, without numbers, because their place in the file is unknown. */
export function diffOf(before: string, after: string): Diff {
  const [old, now] = [linesOf(before), linesOf(after)];
  const lines: Line[] = [];
  const add = (text: string, sign: string, tone: Line["tone"]) => lines.push({ text: sign + text, tone, at: null });
  for (const [kind, text] of steps(old, now)) add(text, kind, kind === "+" ? "added" : kind === "-" ? "removed" : "");
  const count = (tone: string) => lines.filter((line) => line.tone === tone).length;
  return { lines, added: count("added"), removed: count("removed") };
}

type Step = ["+" | "-" | " ", string];

function steps(old: string[], now: string[]): Step[] {
  if (Math.max(old.length, now.length) > MOST_COMPARED) {
    return [...old.map((line): Step => ["-", line]), ...now.map((line): Step => ["+", line])];
  }
  // longest[i][j]: how many lines old[i…] and now[j…] have in common, in their order
  const longest = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      longest[i][j] = old[i] === now[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const made: Step[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      made.push([" ", old[i]]);
      i += 1;
      j += 1;
    } else if (i < old.length && (j === now.length || longest[i + 1][j] >= longest[i][j + 1])) made.push(["-", old[i++]]);
    else made.push(["+", now[j++]]);
  }
  return made;
}
