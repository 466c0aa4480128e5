/** Saves settings: every change goes to the server at once, in order, and the page applies the answer. */
import { api, ApiError, type Settings } from "../api";
import { explained } from "../failures/failures";
import { app } from "../state/app.svelte";

/** How the last change went; shown next to the title. */
export const saving = $state<{ state: "idle" | "saving" | "saved" | "failed"; reason: string }>({
  state: "idle",
  reason: "",
});

const TOLD_FOR = 2_500; // milliseconds that "saved" stays in view
let last: Promise<unknown> = Promise.resolve();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Change some settings, one change at a time: the server gets all settings each time. -> whether it accepted them */
export function changeSettings(change: Partial<Settings>): Promise<boolean> {
  const mine = last.then(() => save(change));
  last = mine;
  return mine;
}

async function save(change: Partial<Settings>): Promise<boolean> {
  if (!app.state) return false;
  clearTimeout(timer);
  saving.state = "saving";
  try {
    app.applySettings(await api.saveSettings({ ...app.state.settings, ...change }));
    saving.state = "saved";
    timer = setTimeout(() => (saving.state = "idle"), TOLD_FOR);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    saving.state = "failed";
    saving.reason = explained(error);
    app.tell(error);
    return false;
  }
}
