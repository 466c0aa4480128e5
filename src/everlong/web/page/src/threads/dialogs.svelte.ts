/** The dialog about a thread that is open: rename, delete, or the choice of a compaction. */
import type { Row, Thread } from "../api";

class Dialogs {
  rename = $state<Thread | null>(null);
  delete = $state<Thread | null>(null);
  /** The compactions of a thread, to choose the one to look before. */
  points = $state<{ thread: Thread; rows: Row[] } | null>(null);
}

export const dialogs = new Dialogs();
