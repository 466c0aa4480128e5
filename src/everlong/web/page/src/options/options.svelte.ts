/** Which options the next thread begins with, and which dialog about options is open. */
import type { Assistant, Options } from "../api";
import { app } from "../state/app.svelte";
import { kept } from "../state/kept.svelte";

class Beginning {
  /** The dialog with the options of the open thread, or of the next one. */
  open = $state(false);
  /** The assistant that is edited; one without an id is new. */
  edited = $state<Partial<Assistant> | null>(null);
  /** Chosen for the next thread: the id of an assistant, "" for none, null for the default one. */
  assistant = $state<string | null>(null);
  /** Set by hand for the next thread; null leaves them to the assistant. */
  options = $state<Options | null>(null);

  /** The assistant that the next thread begins with. */
  get chosen(): Assistant | undefined {
    const { assistants } = kept;
    return assistants.find((each) => (this.assistant === null ? each.default : each.id === this.assistant));
  }

  /** The model of the next thread. */
  get model(): string {
    const own = this.chosen?.model ?? "";
    return app.newModel || (app.model(own) ? own : "") || (app.state?.default_model ?? "");
  }

  choose(assistant: string): void {
    this.assistant = assistant;
    this.options = null;
    app.newModel = "";
  }

  /** The request for a new thread. */
  get wanted(): { model?: string; assistant?: string; options?: Options } {
    const model = (this.options ? this.model : app.newModel) || undefined;
    if (this.options) return { model, assistant: "", options: $state.snapshot(this.options) };
    return this.assistant === null ? { model } : { model, assistant: this.assistant };
  }

  /** Reset the choices after a thread has begun. */
  reset(): void {
    this.assistant = this.options = null;
    app.newModel = "";
  }
}

export const beginning = new Beginning();
