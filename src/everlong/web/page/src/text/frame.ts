/**
 * Draws diagrams inside /diagrams.html: a page without any rights of the app, which holds mermaid and this script.
 *
 * Mermaid measures words with styles that it writes into the document, which the app's page forbids. Here they are
 * allowed, because there is nothing here to steal: no origin, no network, no storage. Only a picture comes out.
 * Not a module: the build writes it into the file after mermaid's own script.
 */
import type { Mermaid } from "mermaid";
import type { DiagramAsked, DiagramTold } from "./diagrams";

declare const mermaid: Mermaid;

const MOST_EDGES = 500;
const LONGEST_PICTURE = 3_000_000; // letters

const COLOURS = {
  light: {
    darkMode: false,
    background: "#fdfcfa",
    primaryColor: "#dcefe9",
    primaryTextColor: "#23211d",
    primaryBorderColor: "#0f6e62",
    secondaryColor: "#eeebf8",
    secondaryTextColor: "#23211d",
    tertiaryColor: "#f3f1ec",
    tertiaryTextColor: "#23211d",
    lineColor: "#5d5850",
    textColor: "#23211d",
    noteBkgColor: "#fbeccd",
    noteTextColor: "#23211d",
    noteBorderColor: "#8f5a00",
    edgeLabelBackground: "#fdfcfa",
  },
  dark: {
    darkMode: true,
    background: "#1b1b19",
    primaryColor: "#16332e",
    primaryTextColor: "#eceae4",
    primaryBorderColor: "#4fc0ac",
    secondaryColor: "#272338",
    secondaryTextColor: "#eceae4",
    tertiaryColor: "#232320",
    tertiaryTextColor: "#eceae4",
    lineColor: "#b4b0a6",
    textColor: "#eceae4",
    noteBkgColor: "#362a12",
    noteTextColor: "#eceae4",
    noteBorderColor: "#e9b860",
    edgeLabelBackground: "#1b1b19",
  },
};

/** The picture with its size, as XML: an <img> needs both. */
function picture(svg: string): { svg: string; width: number; height: number } {
  const holder = document.createElement("div");
  holder.innerHTML = svg;
  const root = holder.querySelector("svg");
  if (!root) throw new Error("nothing was drawn");
  const box = root.viewBox.baseVal;
  const width = Math.ceil(box?.width || 300);
  const height = Math.ceil(box?.height || 150);
  root.removeAttribute("style"); // it sets a maximum width, which the app decides
  root.setAttribute("width", String(width));
  root.setAttribute("height", String(height));
  const text = new XMLSerializer().serializeToString(root);
  if (text.length > LONGEST_PICTURE) throw new Error("the drawing is too large");
  return { svg: text, width, height };
}

async function draw({ id, text, dark, font }: DiagramAsked): Promise<DiagramTold> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    maxTextSize: text.length,
    maxEdges: MOST_EDGES,
    fontFamily: font,
    theme: "base",
    themeVariables: { ...COLOURS[dark ? "dark" : "light"], fontFamily: font, fontSize: "15px" },
  });
  try {
    const { svg } = await mermaid.render(`diagram-${id}`, text);
    return { id, ...picture(svg) };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  } finally {
    document.body.replaceChildren();
  }
}

let last = Promise.resolve();
addEventListener("message", (event: MessageEvent<DiagramAsked>) => {
  if (event.source !== parent) return;
  // One after the other: mermaid has one configuration for all.
  last = last.then(async () => parent.postMessage(await draw(event.data), "*"));
});
parent.postMessage({ id: 0 } satisfies DiagramTold, "*");
