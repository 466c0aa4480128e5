/** What belongs to the whole page: the server's state, the place (route), the theme, the drawers. */
import { api, ApiError, onLoginNeeded, type Entry, type Model, type Settings, type State } from "../api";
import { explained } from "../failures/failures";
import { t } from "../words";
import { speech } from "../words/language.svelte";
import { readRoute, type Route } from "./route";

export type Theme = "system" | "light" | "dark";
const THEME_KEY = "everlong.theme";
const PANEL_KEY = "everlong.panel";

class App {
  /** null until the server has answered once. */
  state = $state<State | null>(null);
  route = $state<Route>(readRoute(location.hash));
  theme = $state<Theme>("system");
  loginNeeded = $state(false);
  /** How the reader gets in, and why that failed the last time. */
  entry = $state<Entry>("login");
  entryProblem = $state("");
  /** The server did not answer at the start. */
  offline = $state(false);
  #width = $state(innerWidth);
  /** Whether the sidebar (and the panel) are drawers over the chat; the widths are those of App.svelte's styles. */
  narrow = $derived(this.#width <= 820);
  panelFloats = $derived(this.#width <= 1180);
  /** The model of the thread that is about to begin; "" is the default. */
  newModel = $state("");
  /** Drawers of a narrow screen. */
  sidebarOpen = $state(false);
  panelOpen = $state(false);
  /** The panel as a column of a wide screen; kept between visits. */
  panelShown = $state(localStorage.getItem(PANEL_KEY) !== "hidden");
  /** A message to the reader that goes away by itself. */
  notice = $state.raw<{ text: string; bad: boolean; details: string } | null>(null);
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    onLoginNeeded((entry) => {
      this.entry = entry;
      this.loginNeeded = true;
    });
    addEventListener("hashchange", () => {
      this.route = readRoute(location.hash);
      this.sidebarOpen = false;
      this.panelOpen = false;
    });
    addEventListener("resize", () => (this.#width = innerWidth));
    const kept = localStorage.getItem(THEME_KEY);
    this.chooseTheme(kept === "light" || kept === "dark" ? kept : "system");
    speech.choose("");
    void this.#finishSignIn().then(() => this.load());
  }

  /** Send the sign-in provider's code from the address to the server, and remove it from the address. */
  async #finishSignIn(): Promise<void> {
    const given = new URLSearchParams(location.search);
    const code = given.get("code");
    const state = given.get("state");
    if (!state) return;
    history.replaceState(null, "", location.pathname + location.hash);
    try {
      if (code) await api.signIn({ code, state });
      else this.entryProblem = t("failure.sign_in_failed"); // the provider refused the sign-in
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.entryProblem = explained(error);
    }
  }

  async load(): Promise<void> {
    try {
      this.state = await api.state();
      this.offline = false;
      speech.choose(this.state.settings.language || this.state.language);
    } catch (error) {
      this.offline = error instanceof ApiError && !(error.status === 401 || error.kind === "proxy");
    }
  }

  /** Apply settings that were just saved. */
  applySettings(settings: Settings): void {
    if (this.state) this.state = { ...this.state, settings, language: settings.language, tools: settings.tools };
    speech.choose(settings.language);
  }

  chooseTheme(theme: Theme): void {
    this.theme = theme;
    if (theme === "system") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem(THEME_KEY);
    } else {
      document.documentElement.dataset.theme = theme;
      localStorage.setItem(THEME_KEY, theme);
    }
  }

  togglePanel(): void {
    if (this.panelFloats) {
      this.panelOpen = !this.panelOpen;
      return;
    }
    this.panelShown = !this.panelShown;
    localStorage.setItem(PANEL_KEY, this.panelShown ? "shown" : "hidden");
  }

  model(id: string): Model | undefined {
    return this.state?.models.find((model) => model.id === id);
  }

  /** Show the reader a message that goes away by itself. */
  say(text: string, bad = false, details = ""): void {
    clearTimeout(this.#noticeTimer);
    const notice = { text, bad, details };
    this.notice = notice;
    this.#noticeTimer = setTimeout(() => this.notice === notice && (this.notice = null), bad ? 9_000 : 4_000);
  }

  /** Dismiss the notice; with `false`, keep it until the reader dismisses it. */
  dismiss(now = true): void {
    clearTimeout(this.#noticeTimer);
    if (now) this.notice = null;
  }

  /** Show why the server refused a request, in plain words. */
  tell(error: ApiError): void {
    if (error.kind !== "login") this.say(explained(error), true, error.kind === "offline" ? "" : error.message);
  }

  /** Call the server; show the reader the error if it fails. -> whether it succeeded */
  async trying(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.tell(error);
      return false;
    }
  }
}

export const app = new App();
