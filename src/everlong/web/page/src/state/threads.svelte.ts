/** The list of threads in the sidebar, and the search through them. */
import { api, type Hit, type Thread } from "../api";
import { app } from "./app.svelte";
import { current } from "./current.svelte";
import { go, threadHash } from "./route";

const PAGE = 200;
const SEARCH_WAIT = 180; // milliseconds of rest before a search is sent

class Threads {
  list = $state<Thread[]>([]);
  hits = $state<Hit[]>([]);
  loaded = $state(false);
  more = $state(false);
  archived = $state(false);
  words = $state("");
  searching = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;

  /** Load the list anew (from its start). Answers that come late are dropped. */
  async load(): Promise<void> {
    const mine = ++this.#asked;
    const q = this.words.trim() || undefined;
    await app.trying(async () => {
      const got = await api.threads({ archived: this.archived, q, limit: PAGE });
      if (mine !== this.#asked) return;
      this.list = got.threads;
      this.hits = q ? (got.hits ?? []) : [];
      this.more = got.threads.length === PAGE;
      this.loaded = true;
    });
    if (mine === this.#asked) this.searching = false;
  }

  async loadMore(): Promise<void> {
    await app.trying(async () => {
      const q = this.words.trim() || undefined;
      const got = await api.threads({ archived: this.archived, q, limit: PAGE, skip: this.list.length });
      const known = new Set(this.list.map((thread) => thread.id));
      this.list.push(...got.threads.filter((thread) => !known.has(thread.id)));
      this.more = got.threads.length === PAGE;
    });
  }

  search(words: string): void {
    this.words = words;
    this.searching = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.load(), SEARCH_WAIT);
  }

  showArchived(archived: boolean): void {
    this.archived = archived;
    void this.load();
  }

  find(id: string): Thread | undefined {
    return this.list.find((thread) => thread.id === id);
  }

  /** Put what is newly known about a thread into the list. */
  note(id: string, change: Partial<Thread>): void {
    const thread = this.find(id);
    if (thread) Object.assign(thread, change);
    if (current.own?.id === id) Object.assign(current.own, change);
  }

  /** Show an empty thread; it is made by the server with its first message. */
  create(): void {
    if (this.archived) this.showArchived(false);
    go("#/");
  }

  /** Make a thread and open it. -> whether that went well */
  async begin(): Promise<boolean> {
    return app.trying(async () => {
      const thread = await api.newThread(app.newModel || undefined);
      this.list = [thread, ...this.list];
      await current.open(thread.id);
      go(threadHash(thread.id));
    });
  }

  async change(id: string, change: Partial<Pick<Thread, "title" | "archived" | "auto" | "model">>): Promise<boolean> {
    return app.trying(async () => {
      const thread = await api.changeThread(id, change);
      if (change.archived !== undefined && change.archived !== this.archived) {
        this.list = this.list.filter((other) => other.id !== id);
      } else {
        this.note(id, thread);
      }
    });
  }

  async delete(id: string): Promise<boolean> {
    return app.trying(async () => {
      await api.deleteThread(id);
      this.list = this.list.filter((thread) => thread.id !== id);
    });
  }

  /** A new thread of the rows before `order`, or of all rows. */
  async branch(id: string, order?: number): Promise<Thread | undefined> {
    let made: Thread | undefined;
    await app.trying(async () => {
      const newest = order === undefined ? (await api.rows(id, { limit: 1 })).rows.at(-1) : undefined;
      made = await api.branch(id, order ?? (newest ? newest.order + 1 : 0));
      this.list = [made, ...this.list];
      go(threadHash(made.id));
    });
    return made;
  }
}

export const threads = new Threads();
