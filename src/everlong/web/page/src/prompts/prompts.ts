/** Prompts: their placeholders, how they are found, and the files they come from and go to. Pure. */
import type { Prompt } from "../api";

/** {name}, or {{name}} as other programs write it: a letter first, so that code in braces stays code. */
const PLACE = /\{\{?\s*(\p{L}[\p{L}\p{N} _-]{0,39}?)\s*\}?\}/gu;
const MOST = 500; // prompts of one file

/** The names in braces, each once, in their order.  "{a} and {b}, {a}" -> ["a", "b"] */
export function placeholders(text: string): string[] {
  return [...new Set([...text.matchAll(PLACE)].map((match) => match[1]))];
}

/** The text with its placeholders filled; one without a value stays as it is. */
export function filled(text: string, values: Record<string, string>): string {
  return text.replace(PLACE, (place, name: string) => values[name] || place);
}

/** The prompts that have all the words in their title or text, those with them in the title first. */
export function found(prompts: Prompt[], words: string): Prompt[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text: string) => wanted.every((word) => text.toLowerCase().includes(word));
  const titled = prompts.filter((prompt) => has(prompt.title));
  return [...titled, ...prompts.filter((prompt) => !titled.includes(prompt) && has(`${prompt.title} ${prompt.text}`))];
}

/** The words after a slash at the beginning; null if the text is something else.  "/tra" -> "tra" */
export function slashed(text: string): string | null {
  return /^\/[^\s/][^\n/]{0,39}$|^\/$/.test(text) ? text.slice(1) : null;
}

/** The prompts of a file, ours or that of another program; null if it holds none. */
export function readFile(text: string): Pick<Prompt, "title" | "text">[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  const list = Array.isArray(parsed) ? parsed : (parsed as { prompts?: unknown } | null)?.prompts;
  if (!Array.isArray(list)) return null;
  const read = list.slice(0, MOST).flatMap((row: Record<string, unknown> | null) => {
    const title = row?.title ?? row?.name ?? row?.command;
    const body = row?.text ?? row?.content ?? row?.prompt;
    return typeof title === "string" && typeof body === "string" && title.trim() && body.trim()
      ? [{ title: title.replace(/^\//, "").slice(0, 120), text: body }]
      : [];
  });
  return read.length ? read : null;
}

/** The content of a file with prompts. */
export function writeFile(prompts: Prompt[]): string {
  return JSON.stringify({ prompts: prompts.map(({ title, text }) => ({ title, text })) }, null, 2);
}
