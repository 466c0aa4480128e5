/** What a person keeps on the server for all threads: assistants, prompts, favourite models. Read once, when needed. */
import { api, type Assistant, type Kept, type Prompt } from "../api";
import { app } from "./app.svelte";

const NOTHING: Kept = { assistants: [], prompts: [], favourites: [], recent: [] };
const MOST_RECENT = 6; // as the server keeps them

class Keeper {
  #all = $state<Kept>(NOTHING);
  #asked: Promise<boolean> | null = null;

  get assistants(): Assistant[] {
    return this.#all.assistants;
  }
  get prompts(): Prompt[] {
    return this.#all.prompts;
  }
  get favourites(): string[] {
    return this.#all.favourites;
  }
  get recent(): string[] {
    return this.#all.recent;
  }

  /** Load it, unless it was loaded already. */
  need(): void {
    this.#asked ??= this.load();
  }

  async load(): Promise<boolean> {
    const read = await app.trying(async () => (this.#all = await api.kept()));
    if (!read) this.#asked = null;
    return read;
  }

  async keepAssistant(assistant: Partial<Assistant>): Promise<boolean> {
    const kept = await app.trying(() => api.keepAssistant(assistant));
    return kept && (await this.load());
  }

  async deleteAssistant(id: string): Promise<boolean> {
    return (await app.trying(() => api.deleteAssistant(id))) && (await this.load());
  }

  async keepPrompt(prompt: Partial<Prompt>): Promise<boolean> {
    return (await app.trying(() => api.keepPrompt(prompt))) && (await this.load());
  }

  async deletePrompt(id: string): Promise<boolean> {
    return (await app.trying(() => api.deletePrompt(id))) && (await this.load());
  }

  async mark(model: string, on: boolean): Promise<void> {
    await app.trying(async () => (this.#all.favourites = (await api.mark(model, on)).favourites));
  }

  /** Note that a model was chosen. The server notes it too. */
  chose(model: string): void {
    this.#all.recent = [model, ...this.recent.filter((other) => other !== model)].slice(0, MOST_RECENT);
  }
}

export const kept = new Keeper();
