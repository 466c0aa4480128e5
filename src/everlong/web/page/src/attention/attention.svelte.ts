/**
 * How a hidden tab gets the reader's attention: by its title, a dot on its icon, and a notification if it is allowed.
 *
 * The browser's permission is requested only after the reader presses the button that offers notifications. The choice
 * (whether, and how much they say) is stored in this browser, like the permission.
 */
import type { ThreadEvent } from "../contract";
import { t } from "../words";
import { dotted } from "./icon";

/** How much a notification says: nothing of the conversation, or its title. */
export type Telling = "off" | "plain" | "title";

const KEY = "everlong.notify";
const NO_THANKS = "everlong.notify.asked";
const LONG = 8_000; // milliseconds; the end of a shorter answer is not worth a notification

class Attention {
  /** Answers that came while the tab was hidden. */
  unseen = $state(0);
  telling = $state<Telling>("off");
  /** The reader said no to the offer. */
  declined = $state(localStorage.getItem(NO_THANKS) === "no");
  /** Whether notifications exist here: only on https and on this machine. */
  possible = typeof Notification !== "undefined" && isSecureContext;
  #started = 0;
  #icon: HTMLLinkElement | null = null;
  #plainIcon = "";

  start(): void {
    const kept = localStorage.getItem(KEY);
    if (kept === "plain" || kept === "title") this.telling = this.possible && Notification.permission === "granted" ? kept : "off";
    this.#icon = document.querySelector('link[rel="icon"]');
    this.#plainIcon = this.#icon?.href ?? "";
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#see();
    });
  }

  /** Turn notifications on (which shows the browser's own question, once) or off. -> the new state */
  async choose(telling: Telling): Promise<Telling> {
    if (telling !== "off" && this.possible && Notification.permission === "default") await Notification.requestPermission();
    const allowed = this.possible && Notification.permission === "granted";
    this.telling = allowed ? telling : "off";
    localStorage.setItem(KEY, this.telling);
    return this.telling;
  }

  decline(): void {
    this.declined = true;
    localStorage.setItem(NO_THANKS, "no");
  }

  /** Take an event of the open thread. */
  hear(event: ThreadEvent, thread: string, title: string): void {
    if (event.type === "running") {
      if (event.running) this.#started ||= performance.now();
      else this.#started = 0;
    } else if (event.type === "ended" && event.reason !== "joined") {
      const long = this.#started > 0 && performance.now() - this.#started >= LONG;
      if (document.hidden) this.#miss(thread, title, long ? t("notify.done") : "");
    } else if (event.type === "ask" && document.hidden) {
      this.#miss(thread, title, t("notify.ask"));
    }
  }

  /** Reset the counts, because another thread is shown. */
  forget(): void {
    this.#started = 0;
    this.#see();
  }

  /** The title of the tab.  -> "(1) Boats · Everlong", "● Answering… Boats" */
  tabTitle(title: string, running: boolean): string {
    const name = title ? `${title} · Everlong` : "Everlong";
    if (this.unseen) return t("tab.unseen", { n: this.unseen, title: name });
    return running ? t("tab.answering", { title: name }) : name;
  }

  #miss(thread: string, title: string, body: string): void {
    this.unseen += 1;
    if (this.#icon) this.#icon.href = dotted(this.#plainIcon);
    if (body && this.telling !== "off") void this.#notify(thread, this.telling === "title" && title ? `${title}: ${body}` : body);
  }

  #see(): void {
    this.unseen = 0;
    if (this.#icon && this.#plainIcon) this.#icon.href = this.#plainIcon;
  }

  async #notify(thread: string, body: string): Promise<void> {
    // The same tag makes several tabs of a thread show one notification.
    const options: NotificationOptions = { body, tag: thread, icon: "/icon-192.png", lang: document.documentElement.lang };
    try {
      const note = new Notification("Everlong", options);
      note.onclick = () => {
        window.focus();
        note.close();
      };
    } catch {
      // On phones, only the service worker can show notifications.
      const worker = await navigator.serviceWorker?.getRegistration();
      await worker?.showNotification("Everlong", options);
    }
  }
}

export const attention = new Attention();
