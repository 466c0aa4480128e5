/** Retries a failed answer automatically, after the wait that the provider asked for. */
import type { Failure } from "../contract";
import { current } from "../state/current.svelte";
import { waitFor } from "./failures";

const MOST = 3; // automatic retries in a row; then the reader has to ask for one

class Retrying {
  /** The seconds that are left; null if nothing is counted down. */
  left = $state<number | null>(null);
  #timer: ReturnType<typeof setInterval> | undefined;
  #thread: string | null = null;
  #times = 0;
  #counted = "";
  #declined = "";

  /** Count down for a failure of the open thread. */
  begin(failure: Failure): void {
    this.cancel();
    const wait = waitFor(failure);
    if (current.id !== this.#thread) this.#times = 0;
    this.#thread = current.id;
    this.#counted = `${current.id} ${current.shown.at(-1)?.id} ${failure.kind}`;
    if (wait === null || this.#times >= MOST || this.#counted === this.#declined) return;
    this.#times += 1;
    const due = performance.now() + wait * 1_000;
    this.left = wait;
    this.#timer = setInterval(() => this.#tick(due), 250);
  }

  #tick(due: number): void {
    this.left = Math.max(0, Math.ceil((due - performance.now()) / 1_000));
    if (this.left > 0) return;
    this.cancel();
    if (current.id === this.#thread && !current.running) void current.retry();
  }

  /** Cancel the automatic retry for good: also when the failure is shown again. */
  decline(): void {
    this.#declined = this.#counted;
    this.cancel();
  }

  /** Stop counting, because the failure is no longer shown. */
  cancel(): void {
    clearInterval(this.#timer);
    this.left = null;
  }

  /** Start counting again, because an answer came or the reader asked for one. */
  forget(): void {
    this.cancel();
    this.#times = 0;
    this.#declined = "";
  }
}

export const retrying = new Retrying();
