import "./browser";
import { mount } from "svelte";
import App from "./App.svelte";
import { app } from "./state/app.svelte";
import "./theme.css";

app.start();
mount(App, { target: document.getElementById("app") as HTMLElement });
