/**
 * What is being written: one draft for each thread, kept in this browser (see src/kept).
 *
 * The text is stored a moment after the last key, and at once when the reader leaves the tab. Attachments go into the
 * database if they fit; those that did not are named when the draft is opened again.
 */
import type { Saying } from "../api";
import { app } from "../state/app.svelte";
import { current } from "../state/current.svelte";
import { clear, drop, get, keys, put, weight } from "../kept/database";
import { forgetDraft, listDrafts, onDraftElsewhere, readDraft, writeDraft, type KeptDraft } from "../kept/drafts";
import { t } from "../words";
import { attachmentsOf, nameOf, readAttachment, type Attachment } from "./attachments";

const REST = 250; // milliseconds without a key until a draft is written
const LARGEST = 25_000_000; // bytes of the attachments of one draft

class Draft {
  text = $state("");
  attachments = $state.raw<Attachment[]>([]);
  /** Names of files whose text is being read. */
  reading = $state.raw<string[]>([]);
  #reads: Promise<unknown> = Promise.resolve();
  /** Counts up when the text was set from outside and the field should take the focus. */
  asked = $state(0);
  /** What another tab wrote for this thread while this tab was writing too. */
  other = $state.raw<KeptDraft | null>(null);
  #thread = "";
  /** What is stored, as far as this tab knows. */
  #stamp = "";
  #keptText = "";
  #keptAttachments: Attachment[] = [];
  #told = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    this.#read();
    onDraftElsewhere((thread) => (thread === null || thread === this.#thread) && this.#elsewhere());
    addEventListener("pagehide", () => this.flush());
    document.addEventListener("visibilitychange", () => document.hidden && this.flush());
    void this.#sweep();
  }

  /** Store the draft of one thread and open that of another. */
  turnTo(thread: string): void {
    if (thread === this.#thread) return;
    this.flush();
    this.#thread = thread;
    this.#read();
  }

  /** Store the text and the attachments soon, if they changed. */
  changed(): void {
    clearTimeout(this.#timer);
    if (!this.#clean()) this.#timer = setTimeout(() => this.flush(), REST);
  }

  /** Store the draft now. */
  flush(): void {
    clearTimeout(this.#timer);
    if (this.#clean()) return;
    const thread = this.#thread;
    const written = writeDraft(thread, this.text, this.attachments.map(nameOf), this.#stamp);
    if (written === "too long" || written === "no room") return this.#tell(t("draft.too_long"));
    if ("other" in written) {
      // If nothing was written here, there is no conflict: the other draft is simply newer.
      if (this.text || this.attachments.length) this.other = written.other;
      return;
    }
    this.other = null;
    this.#stamp = written.stamp;
    this.#keptText = this.text;
    if (this.attachments !== this.#keptAttachments) void this.#keepAttachments(thread, this.attachments);
  }

  /** Choose one of two drafts: the other tab's if `take`, else this one. */
  settle(take: boolean): void {
    const stands = readDraft(this.#thread);
    this.other = null;
    if (take) return this.#read();
    this.#stamp = stands?.stamp ?? "";
    this.#keptText = stands?.text ?? "";
    this.flush();
  }

  suggest(text: string): void {
    this.text = text;
    this.asked += 1;
  }

  /** Take a message back to be changed; text that is already in the field stays after it. */
  takeBack(saying: Saying): void {
    this.attachments = [...attachmentsOf(saying), ...this.attachments];
    this.suggest([saying.text, this.text].filter((text) => text.trim()).join("\n\n"));
  }

  /** Read files and attach them; a message that is sent meanwhile waits for them. */
  attach(files: Iterable<File>): Promise<void> {
    const mine = this.#attach(files);
    this.#reads = Promise.all([this.#reads, mine]);
    return mine;
  }

  /** Wait until the files that were chosen are read. */
  async settled(): Promise<void> {
    await this.#reads;
  }

  async #attach(files: Iterable<File>): Promise<void> {
    // A copy: the browser empties its own list as soon as the event is over.
    const chosen = [...files];
    const thread = this.#thread;
    this.reading = [...this.reading, ...chosen.map((file) => file.name)];
    for (const file of chosen) {
      const read = await readAttachment(file, current.model || app.newModel);
      this.reading = this.reading.filter((_, at) => at !== this.reading.indexOf(file.name));
      if (typeof read === "string") app.say(read, true);
      else if (thread === this.#thread) this.attachments = [...this.attachments, read];
      else app.say(t("composer.left", { name: file.name }), true);
    }
  }

  /** Replace an attachment, in order to send other sections of its file. */
  replace(old: Attachment, fresh: Attachment): void {
    this.attachments = this.attachments.map((one) => (one === old ? fresh : one));
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
    this.flush();
    return saying;
  }

  /** Drop the draft of a removed thread. */
  forget(thread: string): void {
    forgetDraft(thread);
    void drop("attachments", thread);
    if (thread === this.#thread) this.#read();
  }

  /** Remove all drafts from this browser. */
  clear(): void {
    for (const { thread } of listDrafts()) forgetDraft(thread);
    void clear("attachments");
    this.#read();
  }

  #clean(): boolean {
    return this.text === this.#keptText && this.attachments === this.#keptAttachments;
  }

  #read(): void {
    clearTimeout(this.#timer);
    const kept = readDraft(this.#thread);
    this.other = null;
    this.#stamp = kept?.stamp ?? "";
    this.text = this.#keptText = kept?.text ?? "";
    this.attachments = this.#keptAttachments = [];
    if (kept?.names.length) void this.#readAttachments(this.#thread, kept);
  }

  async #readAttachments(thread: string, kept: KeptDraft): Promise<void> {
    const found = (await get<Attachment[]>("attachments", thread)) ?? [];
    if (thread !== this.#thread || this.attachments.length || this.#stamp !== kept.stamp) return;
    this.attachments = this.#keptAttachments = found;
    const there = new Set(found.map(nameOf));
    const lost = kept.names.filter((name) => !there.has(name));
    if (lost.length) app.say(t("draft.not_kept", { names: lost.join(", ") }), true);
  }

  async #keepAttachments(thread: string, attachments: Attachment[]): Promise<void> {
    this.#keptAttachments = attachments;
    if (!attachments.length || weight(attachments) > LARGEST) await drop("attachments", thread);
    else await put("attachments", thread, attachments);
  }

  /** Another tab wrote or sent the draft of this thread. A thread that has not begun is a different one in each tab. */
  #elsewhere(): void {
    if (this.#thread && this.#clean()) this.#read();
  }

  /** Drop the attachments whose draft no longer exists. */
  async #sweep(): Promise<void> {
    const drafts = new Set(listDrafts().map(({ thread }) => thread));
    for (const thread of await keys("attachments")) if (!drafts.has(thread)) await drop("attachments", thread);
  }

  #tell(text: string): void {
    if (this.#told === this.#thread) return;
    this.#told = this.#thread;
    app.say(text, true);
  }
}

export const draft = new Draft();
