/** The sample thread: made by the server in the reader's language when it is first wanted. */
import { api } from "../api";
import { speech } from "../words/language.svelte";
import { app } from "./app.svelte";
import { threadHash } from "./route";
import { threads } from "./threads.svelte";

class Sample {
  opening = $state(false);
  /** Once a visit is enough: a reader who deletes the sample does not want it back. */
  #offered = false;

  /** Open it in place of the current address, so that "back" does not open it again. */
  async open(): Promise<void> {
    if (this.opening) return;
    this.#offered = this.opening = true;
    const opened = await app.trying(async () => {
      const { thread } = await api.sample(speech.now);
      await threads.load();
      location.replace(threadHash(thread));
    });
    this.opening = false;
    if (!opened) location.replace("#/");
  }

  /** Open it for a reader who has no thread yet, on a server that begins with it. */
  offer(): void {
    if (!this.#offered) void this.open();
  }
}

export const sample = new Sample();
