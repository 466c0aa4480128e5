/**
 * What is too large for the browser's small storage: attachments of drafts, and messages that were not sent.
 *
 * A browser may have no such database (a private window) or no room in it. Then nothing is kept, and the caller learns
 * that; nothing else breaks.
 */

export type Store = "attachments" | "unsent";

const NAME = "everlong";
const VERSION = 1;
const STORES: readonly Store[] = ["attachments", "unsent"];

let opened: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(NAME, VERSION);
    request.onupgradeneeded = () => {
      for (const store of STORES) {
        if (!request.result.objectStoreNames.contains(store)) request.result.createObjectStore(store);
      }
    };
    request.onsuccess = () => {
      // Another tab may run a newer page, which must not wait for this one.
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function run<T>(store: Store, mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const transaction = (await open()).transaction(store, mode);
  const request = act(transaction.objectStore(store));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** Keep a value under a key. -> whether it is kept */
export async function put(store: Store, key: string, value: unknown): Promise<boolean> {
  try {
    await run(store, "readwrite", (into) => into.put(value, key));
    return true;
  } catch {
    return false;
  }
}

/** The value of a key; undefined if there is none, or no database. */
export async function get<T>(store: Store, key: string): Promise<T | undefined> {
  try {
    return (await run(store, "readonly", (from) => from.get(key))) as T | undefined;
  } catch {
    return undefined;
  }
}

export async function all<T>(store: Store): Promise<T[]> {
  try {
    return (await run(store, "readonly", (from) => from.getAll())) as T[];
  } catch {
    return [];
  }
}

export async function keys(store: Store): Promise<string[]> {
  try {
    return (await run(store, "readonly", (from) => from.getAllKeys())) as string[];
  } catch {
    return [];
  }
}

export async function drop(store: Store, key: string): Promise<void> {
  try {
    await run(store, "readwrite", (from) => from.delete(key));
  } catch {
    // there was nothing
  }
}

export async function clear(store: Store): Promise<void> {
  try {
    await run(store, "readwrite", (from) => from.clear());
  } catch {
    // there was nothing
  }
}

/** About how many bytes a value takes.  {name: "ab", data: "xyz"} -> 5 */
export function weight(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Blob) return value.size;
  if (value === null || typeof value !== "object") return 0;
  return Object.values(value).reduce((sum: number, part) => sum + weight(part), 0);
}
