/** The language model on this machine, and the progress of its download and start. */
import { api, type LocalModel } from "../api";
import { app } from "./app.svelte";

const LOOK = 400; // milliseconds between two checks during the download and the start
const UNKNOWN: LocalModel = { state: "off", done: 0, size: 0, reason: "" };

class Local {
  now = $state<LocalModel>(UNKNOWN);
  busy = $derived(this.now.state === "fetching" || this.now.state === "starting");
  #timer: ReturnType<typeof setTimeout> | undefined;

  async look(): Promise<void> {
    await this.#take(() => api.local());
  }

  async start(): Promise<void> {
    await this.#take(() => api.startLocal());
  }

  async cancel(): Promise<void> {
    await this.#take(() => api.cancelLocal());
  }

  async #take(ask: () => Promise<LocalModel>): Promise<void> {
    clearTimeout(this.#timer);
    const before = this.now.state;
    await app.trying(async () => (this.now = await ask()));
    if (this.busy) this.#timer = setTimeout(() => void this.look(), LOOK);
    else if (this.now.state === "on" && before !== "on") await app.load();
  }
}

export const local = new Local();
