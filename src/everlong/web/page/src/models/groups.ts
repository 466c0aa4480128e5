/** The models of the picker: found by words, in groups. Pure. */
import type { Model } from "../api";

export interface Group {
  /** "favourites", "recent", or "source:" and its name. */
  key: string;
  models: Model[];
}

/** Whether a model has all the words, in any order.  "gpt mini" fits openai/gpt-4o-mini */
export function fits(model: Pick<Model, "id">, words: string): boolean {
  const id = model.id.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => id.includes(word));
}

/** The groups that hold anything: favourites, recently used, then every source in its order. */
export function grouped(models: Model[], words: string, favourites: string[], recent: string[]): Group[] {
  const found = words.trim() ? models.filter((model) => fits(model, words.trim())) : models;
  const byId = new Map(found.map((model) => [model.id, model]));
  const of = (ids: string[]) => ids.flatMap((id) => byId.get(id) ?? []);
  const marked = new Set(favourites);
  const bySource = new Map<string, Model[]>();
  for (const model of found) {
    const source = bySource.get(model.source);
    if (source) source.push(model);
    else bySource.set(model.source, [model]);
  }
  return [
    { key: "favourites", models: of(favourites) },
    { key: "recent", models: of(recent.filter((id) => !marked.has(id))) },
    ...[...bySource].map(([source, own]) => ({ key: `source:${source}`, models: own })),
  ].filter((group) => group.models.length > 0);
}

/** The groups, cut to the first `most` models in total. */
export function bounded(groups: Group[], most: number): Group[] {
  const kept: Group[] = [];
  let left = most;
  for (const group of groups) {
    if (left <= 0) break;
    kept.push(left < group.models.length ? { ...group, models: group.models.slice(0, left) } : group);
    left -= group.models.length;
  }
  return kept;
}
