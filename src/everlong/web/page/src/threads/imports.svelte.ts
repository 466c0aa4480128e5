/** Imports files, and keeps the progress and the result of each. */
import { ApiError, importFile, type ImportEvent } from "../api";
import { explained } from "../failures/failures";
import { threads } from "../state/threads.svelte";

const MOST_FILES = 100;

export interface Import {
  name: string;
  /** null until the server has reported something. */
  report: ImportEvent | null;
  error: string;
}

class Imports {
  files = $state<Import[]>([]);
  open = $state(false);
  busy = $state(false);

  /** Import files, one after the other. */
  async bring(files: File[]): Promise<void> {
    if (!files.length || this.busy) return;
    this.busy = this.open = true;
    this.files = files.slice(0, MOST_FILES).map((file) => ({ name: file.name, report: null, error: "" }));
    for (const [at, file] of files.slice(0, MOST_FILES).entries()) {
      try {
        await importFile(file, (event) => (this.files[at].report = event));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.files[at].error = explained(error);
      }
    }
    this.busy = false;
    await threads.load();
  }

  /** Ask for files, and import them. */
  ask(): void {
    const field = document.createElement("input");
    field.type = "file";
    field.multiple = true;
    field.accept = ".json,.jsonl,.zip,.gz";
    field.onchange = () => void this.bring([...(field.files ?? [])]);
    field.click();
  }
}

export const imports = new Imports();
