/** The language in use: the reader's choice, else the browser's. */
import { FALLBACK, TABLES } from "./tables";

function ofBrowser(): string {
  const wanted = navigator.language.toLowerCase();
  return Object.keys(TABLES).find((language) => wanted.startsWith(language)) ?? FALLBACK;
}

class Speech {
  /** The name of a table. */
  now = $state(ofBrowser());

  /** The words of the language in use. */
  get table() {
    return TABLES[this.now];
  }

  /** Follow a setting; "" means the browser decides. */
  choose(language: string): void {
    this.now = Object.hasOwn(TABLES, language) ? language : ofBrowser();
    document.documentElement.lang = this.table["language.tag"];
  }
}

export const speech = new Speech();
