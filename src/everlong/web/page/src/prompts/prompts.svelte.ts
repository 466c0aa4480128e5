/** The prompts that can be inserted, and which dialog about them is open. */
import type { Prompt } from "../api";
import { draft } from "../composer/draft.svelte";
import { kept } from "../state/kept.svelte";
import { en } from "../words/en";
import { t, type Key } from "../words";
import { filled, placeholders, slashed } from "./prompts";

const OWN = "prompt.built."; // how the keys of our own prompts begin
const BUILT = (Object.keys(en) as Key[]).filter((key) => key.startsWith(OWN) && key.endsWith(".title"));

class Prompts {
  /** The dialog with all prompts. */
  open = $state(false);
  /** The prompt that is edited; one without an id is new. */
  edited = $state<Partial<Prompt> | null>(null);
  /** The prompt whose placeholders are being filled. */
  filling = $state.raw<Prompt | null>(null);

  /** The reader's own prompts, then ours in the language in use. */
  get all(): Prompt[] {
    return [...kept.prompts, ...this.built];
  }

  get built(): Prompt[] {
    return BUILT.map((key) => ({ id: key, title: t(key), text: t(key.replace(/title$/, "text") as Key) }));
  }

  isBuilt(prompt: Prompt): boolean {
    return prompt.id.startsWith(OWN);
  }

  /** Insert a prompt into the message, after asking for the values of its placeholders. */
  choose(prompt: Prompt): void {
    this.open = false;
    if (placeholders(prompt.text).length) this.filling = prompt;
    else this.insert(prompt, {});
  }

  insert(prompt: Prompt, values: Record<string, string>): void {
    this.filling = null;
    const text = filled(prompt.text, values);
    const before = slashed(draft.text) === null ? draft.text.trimEnd() : "";
    draft.suggest(before ? `${before}\n\n${text}` : text);
  }
}

export const prompts = new Prompts();
