/** What belongs to the whole page: the server's state, the place (route), the theme, the drawers. */
import { api, ApiError, onLoginNeeded, type Model, type Settings, type State } from "../api";
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
  /** The server did not answer at the start. */
  offline = $state(false);
  #width = $state(innerWidth);
  /** The sidebar (and the panel) lie over the chat as drawers; the widths are those of App.svelte's styles. */
  narrow = $derived(this.#width <= 820);
  panelFloats = $derived(this.#width <= 1180);
  /** The model of the thread that is about to begin; "" is the default. */
  newModel = $state("");
  /** Drawers of a narrow screen. */
  sidebarOpen = $state(false);
  panelOpen = $state(false);
  /** The panel as a column of a wide screen; kept between visits. */
  panelShown = $state(localStorage.getItem(PANEL_KEY) !== "hidden");
  /** One passing message to the reader. */
  notice = $state<{ text: string; bad: boolean } | null>(null);
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    onLoginNeeded(() => (this.loginNeeded = true));
    addEventListener("hashchange", () => {
      this.route = readRoute(location.hash);
      this.sidebarOpen = false;
      this.panelOpen = false;
    });
    addEventListener("resize", () => (this.#width = innerWidth));
    const kept = localStorage.getItem(THEME_KEY);
    this.chooseTheme(kept === "light" || kept === "dark" ? kept : "system");
    speech.choose("");
    void this.load();
  }

  async load(): Promise<void> {
    try {
      this.state = await api.state();
      this.offline = false;
      speech.choose(this.state.settings.language || this.state.language);
    } catch (error) {
      this.offline = error instanceof ApiError && error.kind !== "login";
    }
  }

  /** Take over settings that were just saved. */
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

  /** Tell the reader something in passing. */
  say(text: string, bad = false): void {
    clearTimeout(this.#noticeTimer);
    this.notice = { text, bad };
    this.#noticeTimer = setTimeout(() => (this.notice = null), bad ? 7_000 : 3_000);
  }

  /** Do something with the server; tell the reader if it fails. -> whether it went well */
  async trying(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.kind !== "login") this.say(error.kind === "offline" ? t("app.offline") : error.message, true);
      return false;
    }
  }
}

export const app = new App();
