/** Whether the page is dark now, by the reader's choice or the system's. */
import { MediaQuery } from "svelte/reactivity";
import { app } from "../state/app.svelte";

const system = new MediaQuery("prefers-color-scheme: dark");

export function isDark(): boolean {
  return app.theme === "system" ? system.current : app.theme === "dark";
}
