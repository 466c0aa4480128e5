/** The list of threads in the sidebar, the folders they are in, and the search through them. */
import { SvelteSet } from "svelte/reactivity";
import { api, ApiError, type Folder, type Hit, type SearchIn, type Thread, type ThreadChange } from "../api";
import { draft } from "../composer/draft.svelte";
import { unsent } from "../kept/unsent.svelte";
import { beginning } from "../options/options.svelte";
import { seen } from "../threads/seen.svelte";
import { app } from "./app.svelte";
import { current } from "./current.svelte";
import { go, threadHash } from "./route";

const PAGE = 200;
const SEARCH_WAIT = 180; // milliseconds of rest before a search is sent
const LOOK_AGAIN = 4_000; // milliseconds between two checks while another thread is answering
const OPEN_KEY = "everlong.folders";

function openFolders(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(OPEN_KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

class Threads {
  /** Those that are neither pinned nor in a folder; in the archive and in a search, all that were found. */
  list = $state<Thread[]>([]);
  pinned = $state<Thread[]>([]);
  folders = $state<Folder[]>([]);
  hits = $state<Hit[]>([]);
  loaded = $state(false);
  more = $state(false);
  archived = $state(false);
  words = $state("");
  searchIn = $state<SearchIn>("");
  searching = $state(false);
  /** The folders whose threads are shown. */
  readonly open = new SvelteSet<string>(openFolders());
  #timer: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;
  /** How many lists are loading, and the changes noted meanwhile: the lists may be older than these. */
  #loading = 0;
  #noted: [string, Partial<Thread>][] = [];

  /** Load the list again, from its start. Late answers are dropped. */
  async load(): Promise<void> {
    const mine = ++this.#asked;
    const q = this.words.trim();
    this.#loading += 1;
    await app.trying(async () => {
      const got = q || this.archived ? { pinned: [], folders: [], ...(await this.#found(q)) } : { hits: [], ...(await api.shelf([...this.open], PAGE)) };
      if (mine !== this.#asked) return;
      const fresh = new Set(got.threads.map((thread) => thread.id));
      const further = this.loaded && this.list.length > PAGE && got.threads.length === PAGE && !q;
      this.list = further ? [...got.threads, ...this.list.filter((thread) => !fresh.has(thread.id))] : got.threads;
      this.more = further ? this.more : got.threads.length === PAGE;
      this.pinned = got.pinned;
      this.folders = got.folders;
      this.hits = got.hits ?? [];
      this.loaded = true;
      for (const [id, change] of this.#noted) this.#put(id, change);
      this.#lookAgain();
    });
    this.#loading -= 1;
    if (!this.#loading) this.#noted = [];
    if (mine === this.#asked) this.searching = false;
  }

  #found(q: string): Promise<{ threads: Thread[]; hits?: Hit[] }> {
    if (!q) return api.threads({ archived: 1, limit: PAGE });
    return api.threads({ q, in: this.searchIn, archived: this.archived ? 1 : undefined, limit: PAGE });
  }

  async loadMore(): Promise<void> {
    await app.trying(async () => {
      const q = this.words.trim();
      const skip = this.list.length;
      const plain = q ? { q, in: this.searchIn, archived: this.archived ? (1 as const) : undefined } : this.archived ? { archived: 1 as const } : { loose: 1 as const };
      const got = await api.threads({ ...plain, limit: PAGE, skip });
      const known = new Set(this.list.map((thread) => thread.id));
      this.list.push(...got.threads.filter((thread) => !known.has(thread.id)));
      this.more = got.threads.length === PAGE;
    });
  }

  /** Load the next threads of a folder. */
  async loadFolder(name: string): Promise<void> {
    const folder = this.folders.find((one) => one.name === name);
    if (!folder) return;
    await app.trying(async () => {
      const got = await api.threads({ folder: name, limit: PAGE, skip: folder.threads.length });
      const known = new Set(folder.threads.map((thread) => thread.id));
      folder.threads.push(...got.threads.filter((thread) => !known.has(thread.id)));
    });
  }

  toggle(folder: string, open = !this.open.has(folder)): void {
    if (open) this.open.add(folder);
    else this.open.delete(folder);
    localStorage.setItem(OPEN_KEY, JSON.stringify([...this.open]));
    if (open) void this.loadFolder(folder);
  }

  search(words: string): void {
    this.words = words;
    this.searching = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.load(), SEARCH_WAIT);
  }

  narrow(searchIn: SearchIn): void {
    this.searchIn = searchIn;
    void this.load();
  }

  showArchived(archived: boolean): void {
    this.archived = archived;
    void this.load();
  }

  /** Every thread that is listed; one may be in two places. */
  get all(): Thread[] {
    return [...this.pinned, ...this.folders.flatMap((folder) => folder.threads), ...this.list];
  }

  find(id: string): Thread | undefined {
    return this.all.find((thread) => thread.id === id);
  }

  /** While a thread that is not open is answering, check now and then whether it is done. */
  #lookAgain(): void {
    clearTimeout(this.#again);
    if (!this.all.some((thread) => thread.running && thread.id !== current.id)) return;
    this.#again = setTimeout(() => {
      if (document.hidden) this.#lookAgain();
      else void this.load();
    }, LOOK_AGAIN);
  }

  /** Update a thread in the list. */
  note(id: string, change: Partial<Thread>): void {
    if (this.#loading) this.#noted.push([id, change]);
    this.#put(id, change);
  }

  #put(id: string, change: Partial<Thread>): void {
    for (const thread of this.all) if (thread.id === id) Object.assign(thread, change);
    if (current.own?.id === id) Object.assign(current.own, change);
  }

  /** Note that the reader has seen the open thread as it is now. */
  look(): void {
    const thread = current.id ? this.find(current.id) : undefined;
    if (thread && !document.hidden) seen.look(thread.id, thread.messages);
    this.#lookAgain();
  }

  /** Show an empty thread; the server creates it with its first message. */
  create(): void {
    if (this.archived) this.showArchived(false);
    go("#/");
  }

  /** Make a thread and open it. -> the error if the server refused */
  async begin(): Promise<ApiError | null> {
    try {
      const thread = await api.newThread(beginning.wanted);
      beginning.reset();
      this.list = [thread, ...this.list];
      await current.open(thread.id);
      go(threadHash(thread.id));
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error;
    }
  }

  async change(id: string, change: ThreadChange): Promise<boolean> {
    return app.trying(async () => {
      const thread = await api.changeThread(id, change);
      const moved = change.folder !== undefined || change.pinned !== undefined;
      if (change.archived !== undefined && change.archived !== this.archived) this.#drop([id]);
      else this.note(id, thread);
      if (moved) await this.load();
    });
  }

  /** Change several threads at once. -> whether it succeeded */
  async changeMany(ids: string[], change: { archived?: boolean; folder?: string; delete?: boolean }): Promise<boolean> {
    return app.trying(async () => {
      await api.changeMany(ids, change);
      if (change.delete) ids.forEach((id) => this.forget(id));
      if (change.delete || change.archived !== undefined) this.#drop(ids);
      await this.load();
    });
  }

  async delete(id: string): Promise<boolean> {
    return app.trying(async () => {
      await api.deleteThread(id);
      this.forget(id);
      this.#drop([id]);
    });
  }

  /** Drop what this browser keeps for a removed thread. */
  forget(id: string): void {
    draft.forget(id);
    unsent.forget(id);
  }

  #drop(ids: string[]): void {
    const gone = new Set(ids);
    const stays = (thread: Thread) => !gone.has(thread.id);
    this.list = this.list.filter(stays);
    this.pinned = this.pinned.filter(stays);
    for (const folder of this.folders) {
      const left = folder.threads.filter(stays);
      folder.count -= folder.threads.length - left.length;
      folder.threads = left;
    }
  }

  /** Make a new thread from the rows before `order`, or from all rows. */
  async branch(id: string, order?: number): Promise<Thread | undefined> {
    let made: Thread | undefined;
    await app.trying(async () => {
      const newest = order === undefined ? (await api.rows(id, { limit: 1 })).rows.at(-1) : undefined;
      made = await api.branch(id, order ?? (newest ? newest.order + 1 : 0));
      go(threadHash(made.id));
      await this.load();
    });
    return made;
  }
}

export const threads = new Threads();
