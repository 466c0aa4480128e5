/** What a call of one of our tools does, and how it ended, read from its arguments and its result. Pure. */
import type { Call } from "../api";
import { diffOf, type Diff } from "./diff";

export type Act =
  | { kind: "edit"; path: string; diff: Diff }
  | { kind: "write"; path: string; diff: Diff }
  | { kind: "command"; command: string; folder: string };

/** How a command ended: its exit code, or the tool's words if it has none. */
export type Exit = { code: number } | { words: string };

function fields(given: unknown): Record<string, unknown> {
  let value = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch {
      return {}; // still growing, or cut
    }
  }
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** The act of a call; null for other tools, and while the arguments are incomplete. */
export function actOf(call: Call): Act | null {
  const given = fields(call.arguments);
  const text = (name: string) => (typeof given[name] === "string" ? given[name] : null);
  const [path, command] = [text("path"), text("command")];
  const [before, after, content] = [text("old_text"), text("new_text"), text("content")];
  if (call.name === "edit_file" && path !== null && before !== null && after !== null) {
    return { kind: "edit", path, diff: diffOf(before, after) };
  }
  if (call.name === "write_file" && path !== null && content !== null) {
    return { kind: "write", path, diff: diffOf("", content) };
  }
  if (call.name === "shell" && command !== null) return { kind: "command", command, folder: text("folder") ?? "." };
  return null;
}

/** How a command ended, as the last lines of its result say.  "…\n[exit code 1]" -> {code: 1} */
export function exitOf(result: string): Exit | null {
  const ends = [...result.slice(-600).matchAll(/^\[((?:exit code (\d+)|killed by signal|stopped)[^\n]*)\]$/gm)];
  const last = ends.at(-1);
  if (!last) return null;
  return last[2] === undefined ? { words: last[1] } : { code: Number(last[2]) };
}

/** The folder in which a command that needs an answer would run, from its subject.  "cd src && ls", "ls" -> "src" */
export function folderOf(subject: string, command: string): string {
  const end = ` && ${command}`;
  return subject.startsWith("cd ") && subject.endsWith(end) ? subject.slice(3, -end.length) : ".";
}
