/** Which question about a thread stands open in a dialog. */
import type { Row, Thread } from "../api";

class Asking {
  rename = $state<Thread | null>(null);
  delete = $state<Thread | null>(null);
  /** The compactions of a thread, to choose the one to look before. */
  points = $state<{ thread: Thread; rows: Row[] } | null>(null);
}

export const asking = new Asking();
