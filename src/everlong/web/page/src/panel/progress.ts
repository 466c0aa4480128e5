/** A summary that is being written, in readable form. */

/** A JSON string, complete or not, and the colon that makes it a name. */
const STRING = /"((?:[^"\\]|\\.)*)(?:"|$)(\s*:)?/g;

/**
 * Models write summaries as JSON; the reader sees its sentences. Anything else stays as it is.
 *
 * '{"context": "A shop.", "done": ["One", "Tw'  ->  "A shop.\nOne\nTw"
 */
export function readable(text: string): string {
  const json = text.replace(/^\s*```(?:json)?/, "").trimStart();
  if (!json.startsWith("{")) return text;
  return [...json.matchAll(STRING)]
    .filter(([, words, named]) => !named && words)
    .map(([, words]) => unescaped(words))
    .join("\n");
}

function unescaped(words: string): string {
  try {
    return JSON.parse(`"${words.replace(/\\$/, "")}"`) as string;
  } catch {
    return words; // cut in the middle of an escape; the next piece completes it
  }
}
