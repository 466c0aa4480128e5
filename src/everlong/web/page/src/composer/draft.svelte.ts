/** What is being written: one draft for each thread, kept while the page is open. */
import type { Saying } from "../api";
import { app } from "../state/app.svelte";
import { t } from "../words";
import { readAttachment, type Attachment } from "./attachments";

interface Kept {
  text: string;
  attachments: Attachment[];
}

class Draft {
  text = $state("");
  attachments = $state.raw<Attachment[]>([]);
  /** Counts up when the text was set from outside and the field should take the focus. */
  asked = $state(0);
  #thread = "";
  #kept = new Map<string, Kept>();

  /** Put the draft of one thread aside and take up that of another. */
  turnTo(thread: string): void {
    if (thread === this.#thread) return;
    this.#kept.set(this.#thread, { text: this.text, attachments: this.attachments });
    this.#thread = thread;
    const kept = this.#kept.get(thread);
    this.text = kept?.text ?? "";
    this.attachments = kept?.attachments ?? [];
  }

  suggest(text: string): void {
    this.text = text;
    this.asked += 1;
  }

  async attach(files: Iterable<File>): Promise<void> {
    // A copy: the browser empties its own list as soon as the event is over.
    for (const file of [...files]) {
      const read = await readAttachment(file);
      if (typeof read === "string") app.say(t(read, { name: file.name }), true);
      else this.attachments = [...this.attachments, read];
    }
  }

  drop(attachment: Attachment): void {
    this.attachments = this.attachments.filter((other) => other !== attachment);
  }

  /** Take the draft out of the field. */
  take(): Saying {
    const saying: Saying = {
      text: this.text.trim(),
      images: this.attachments.flatMap((one) => (one.kind === "picture" ? [one.picture] : [])),
      files: this.attachments.flatMap((one) => (one.kind === "file" ? [one.file] : [])),
    };
    this.text = "";
    this.attachments = [];
    return saying;
  }

  /** Give back what could not be sent, unless something new stands there. */
  restore(text: string, attachments: Attachment[]): void {
    if (this.text || this.attachments.length) return;
    this.text = text;
    this.attachments = attachments;
  }
}

export const draft = new Draft();
