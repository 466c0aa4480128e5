/** Threads that are dragged onto a folder or a heading. */
import { threads } from "../state/threads.svelte";
import { chosen } from "./chosen.svelte";

const KIND = "application/x-everlong-threads";

export type Target = { folder: string } | { pinned: boolean };

/** Begin to drag a thread, with all that are chosen if it is one of them. */
export function drag(event: DragEvent, id: string): void {
  const ids = chosen.ids.has(id) ? [...chosen.ids] : [id];
  event.dataTransfer?.setData(KIND, JSON.stringify(ids));
  if (event.dataTransfer) event.dataTransfer.effectAllowed = "move";
}

/** Whether files of the machine are dragged, and not threads of the list. */
export function bringsFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

async function put(ids: string[], target: Target): Promise<void> {
  if ("folder" in target) await threads.changeMany(ids, target);
  else for (const id of ids) await threads.change(id, target);
  chosen.end();
}

/** Let threads be dropped on an element; without a target, none can be. */
export function dropOnto(element: HTMLElement, target: Target | undefined): { update: (now: Target | undefined) => void; destroy: () => void } {
  let now = target;
  const fits = (event: DragEvent) => now !== undefined && (event.dataTransfer?.types.includes(KIND) ?? false);
  const over = (event: DragEvent) => {
    if (!fits(event)) return;
    event.preventDefault();
    element.classList.add("drop-target");
  };
  const leave = () => element.classList.remove("drop-target");
  const drop = (event: DragEvent) => {
    leave();
    if (!fits(event) || !now) return;
    event.preventDefault();
    event.stopPropagation();
    void put(JSON.parse(event.dataTransfer?.getData(KIND) || "[]") as string[], now);
  };
  const heard = { dragover: over, dragleave: leave, drop } as const;
  for (const [name, act] of Object.entries(heard)) element.addEventListener(name, act as EventListener);
  return {
    update: (next) => (now = next),
    destroy: () => {
      for (const [name, act] of Object.entries(heard)) element.removeEventListener(name, act as EventListener);
    },
  };
}
