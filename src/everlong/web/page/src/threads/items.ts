/** What can be done with a thread, as the entries of its menu. */
import type { Thread } from "../api";
import type { Item } from "../pieces/menu";
import { app } from "../state/app.svelte";
import { go } from "../state/route";
import { threads } from "../state/threads.svelte";
import { t } from "../words";
import { chosen } from "./chosen.svelte";
import { dialogs } from "./dialogs.svelte";
import { pointsOf } from "./points";

async function archive(thread: Thread, here: boolean): Promise<void> {
  const archived = !thread.archived;
  if (!(await threads.change(thread.id, { archived }))) return;
  app.say(t(archived ? "threads.archived" : "threads.restored"));
  if (here && archived) go("#/");
}

async function showPoints(thread: Thread): Promise<void> {
  await app.trying(async () => {
    dialogs.points = { thread, rows: await pointsOf(thread.id, thread.points) };
  });
}

/** The entries of the menu of a thread; `here`: it is the open one. */
export function itemsFor(thread: Thread, here: boolean): Item[] {
  const title = thread.title || t("threads.untitled");
  return [
    { label: t("threads.rename"), icon: "edit", act: () => (dialogs.rename = thread) },
    {
      label: t(thread.pinned ? "threads.unpin" : "threads.pin"),
      icon: "pin",
      act: () => void threads.change(thread.id, { pinned: !thread.pinned }),
    },
    { label: t("threads.move"), icon: "folder", act: () => (dialogs.move = { ids: [thread.id], folder: thread.folder }) },
    { label: t("threads.branch"), icon: "branch", divided: true, act: () => void threads.branch(thread.id) },
    { label: t("threads.branches"), icon: "tree", act: () => (dialogs.branches = thread.id) },
    { label: t("threads.before"), icon: "clock", disabled: !thread.points, act: () => void showPoints(thread) },
    { label: t("threads.export"), icon: "out", divided: true, act: () => (dialogs.export = { ids: [thread.id], title }) },
    { label: t("threads.choose"), icon: "check", act: () => chosen.begin(thread.id) },
    {
      label: t(thread.archived ? "threads.restore" : "threads.to_archive"),
      icon: thread.archived ? "restore" : "archive",
      act: () => void archive(thread, here),
    },
    { label: t("threads.delete"), icon: "trash", danger: true, divided: true, act: () => (dialogs.delete = { ids: [thread.id], title }) },
  ];
}
