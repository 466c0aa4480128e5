/** The arguments of a tool call as text. Pure. */

function parsed(given: unknown): unknown {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given);
  } catch {
    return given; // still growing, or never was JSON
  }
}

/** One line of the arguments.  {path: "a.txt", n: 2} -> "a.txt, 2" */
export function argumentLine(given: unknown): string {
  const value = parsed(given);
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  return Object.values(value)
    .map((one) => (typeof one === "string" ? one : JSON.stringify(one)))
    .join(", ")
    .replace(/\s+/g, " ")
    .slice(0, 200);
}

/** All arguments as readable text. */
export function argumentText(given: unknown): string {
  const value = parsed(given);
  return typeof value === "string" ? value : JSON.stringify(value ?? {}, null, 2);
}
