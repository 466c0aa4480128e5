import "./browser";
import { mount } from "svelte";
import App from "./App.svelte";
import { attention } from "./attention/attention.svelte";
import { draft } from "./composer/draft.svelte";
import { unsent } from "./kept/unsent.svelte";
import { install } from "./offline/install";
import { app } from "./state/app.svelte";
import "./theme.css";

attention.start();
app.start();
draft.start();
void unsent.load();
install();
mount(App, { target: document.getElementById("app") as HTMLElement });
