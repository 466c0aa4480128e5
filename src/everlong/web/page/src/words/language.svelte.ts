/** The language in use: the reader's choice, else the browser's. */
import type { Language } from "../api";

export type Spoken = "en" | "zh";

function ofBrowser(): Spoken {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

class Speech {
  now = $state<Spoken>(ofBrowser());

  /** Follow a setting; "" means the browser decides. */
  choose(language: Language): void {
    this.now = language || ofBrowser();
    document.documentElement.lang = this.now === "zh" ? "zh-CN" : "en";
  }
}

export const speech = new Speech();
