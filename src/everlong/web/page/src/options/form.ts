/** The options of a thread as they are written in a form, and what is wrong with them. Pure. */
import type { Options } from "../api";
import type { Key } from "../words";

/** The fields as they were typed; an empty one is not set. */
export interface Form {
  system: string;
  temperature: string;
  top_p: string;
  max_tokens: string;
  tools: "follow" | "on" | "off";
}

export type Wrong = Partial<Record<keyof Form, Key>>;

const LONGEST_SYSTEM = 32_000;
const LONGEST_ANSWER = 1_000_000;

export const NO_OPTIONS: Options = { system: "", temperature: null, top_p: null, max_tokens: null, tools: null };

const written = (value: number | null) => (value === null ? "" : String(value));

export function formOf(options: Options): Form {
  return {
    system: options.system,
    temperature: written(options.temperature),
    top_p: written(options.top_p),
    max_tokens: written(options.max_tokens),
    tools: options.tools === null ? "follow" : options.tools ? "on" : "off",
  };
}

/** A number as people write it; a comma may stand for the point.  "0,7" -> 0.7, "" -> null, "warm" -> NaN */
function parsed(text: string): number | null {
  const plain = text.trim().replace(",", ".");
  return plain === "" ? null : Number(plain);
}

/** The options of a form, and a line for each field that is wrong. */
export function readForm(form: Form): { options: Options; wrong: Wrong } {
  const [temperature, top_p] = [parsed(form.temperature), parsed(form.top_p)];
  const max_tokens = parsed(form.max_tokens.replaceAll(/[\s,.](?=\d{3}\b)/g, ""));
  const wrong: Wrong = {};
  if (form.system.length > LONGEST_SYSTEM) wrong.system = "options.system_wrong";
  if (temperature !== null && !(temperature >= 0 && temperature <= 2)) wrong.temperature = "options.temperature_wrong";
  if (top_p !== null && !(top_p > 0 && top_p <= 1)) wrong.top_p = "options.top_p_wrong";
  if (max_tokens !== null && !(Number.isInteger(max_tokens) && max_tokens >= 1 && max_tokens <= LONGEST_ANSWER)) {
    wrong.max_tokens = "options.max_tokens_wrong";
  }
  const tools = form.tools === "follow" ? null : form.tools === "on";
  return { options: { system: form.system.trim(), temperature, top_p, max_tokens, tools }, wrong };
}

/** Whether the beginning of the next request changes, so that no provider has it in its cache. */
export function changesPrefix(before: Options, after: Options): boolean {
  return before.system !== after.system || before.tools !== after.tools;
}
