/** The dialog about threads or folders that is open. */
import type { Row, Thread } from "../api";

class Dialogs {
  rename = $state<Thread | null>(null);
  /** Threads that are about to be deleted, moved, or exported (null: all of them). */
  delete = $state<{ ids: string[]; title: string } | null>(null);
  move = $state<{ ids: string[]; folder: string } | null>(null);
  export = $state<{ ids: string[] | null; title: string } | null>(null);
  /** The compactions of a thread, to choose the one before which it is shown. */
  points = $state<{ thread: Thread; rows: Row[] } | null>(null);
  /** The thread whose branches are shown. */
  branches = $state<string | null>(null);
  /** The folder that gets a name ("" is a new one), and the one that is about to be removed. */
  folder = $state<string | null>(null);
  deleteFolder = $state<string | null>(null);
}

export const dialogs = new Dialogs();
