/**
 * Diagrams as pictures: asks the frame that draws them, and keeps what it drew.
 *
 * What a model wrote reaches mermaid only inside that frame, and what comes back is shown as an <img>: there nothing
 * runs, nothing is loaded and nothing can be clicked, whatever the diagram says.
 */

export interface DiagramAsked {
  id: number;
  text: string;
  dark: boolean;
  font: string;
}
/** An answer of the frame; `id` 0 means that it is ready. */
export interface DiagramTold {
  id: number;
  svg?: string;
  width?: number;
  height?: number;
  error?: string;
}
export interface Picture {
  source: string;
  width: number;
  height: number;
}

/** The frame's address with a digest of its content, inserted by the build. */
declare const DIAGRAMS_PAGE: string;

const SECONDS = 40; // for one diagram and those before it; the first also waits for the frame
const LONGEST = 20_000; // letters
const KEPT = 100; // pictures, so that scrolling back does not draw again

const kept = new Map<string, { drawing: Promise<Picture>; picture: Picture | null }>();
const waiting = new Map<number, { done: (told: DiagramTold) => void; failed: (error: Error) => void }>();
let frame: { element: HTMLIFrameElement; ready: Promise<void> } | null = null;
let lastId = 0;

const keyOf = (text: string, dark: boolean) => `${dark ? "dark" : "light"} ${text}`;

/** The picture of a diagram that is drawn already, so that a row that is shown again has its height at once. */
export function drawnPicture(text: string, dark: boolean): Picture | null {
  return kept.get(keyOf(text, dark))?.picture ?? null;
}

/** The picture of a diagram. Rejects with one line if there is none. */
export function pictureOf(text: string, dark: boolean): Promise<Picture> {
  const key = keyOf(text, dark);
  const known = kept.get(key);
  if (known) return known.drawing;
  const tooLong = text.length > LONGEST;
  const drawing = tooLong ? Promise.reject(new Error(`${text.length} > ${LONGEST}`)) : drawn(text, dark);
  const entry = { drawing, picture: null as Picture | null };
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
  kept.set(key, entry);
  drawing.then(
    (picture) => (entry.picture = picture),
    () => undefined,
  );
  return drawing;
}

async function drawn(text: string, dark: boolean): Promise<Picture> {
  const id = (lastId += 1);
  const { svg, width, height, error } = await new Promise<DiagramTold>((done, failed) => {
    const tooLong = setTimeout(() => close(new Error("it takes too long")), SECONDS * 1_000);
    const settled = () => (clearTimeout(tooLong), waiting.delete(id));
    waiting.set(id, {
      done: (told) => (settled(), done(told)),
      failed: (why) => (settled(), failed(why)),
    });
    const { element, ready } = (frame ??= opened());
    const font = getComputedStyle(document.body).fontFamily;
    const asked: DiagramAsked = { id, text, dark, font };
    void ready.then(() => element.contentWindow?.postMessage(asked, "*"));
  });
  if (typeof svg !== "string" || !width || !height) throw new Error(firstLine(error ?? ""));
  return { source: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, width, height };
}

function firstLine(text: string): string {
  return text.split("\n")[0].replace(/[:\s]+$/, "").slice(0, 200);
}

function opened(): { element: HTMLIFrameElement; ready: Promise<void> } {
  const element = document.createElement("iframe");
  element.className = "offstage";
  element.setAttribute("sandbox", "allow-scripts");
  element.setAttribute("aria-hidden", "true");
  element.tabIndex = -1;
  element.src = DIAGRAMS_PAGE;
  const ready = new Promise<void>((done) => {
    addEventListener("message", function heard({ source, data }: MessageEvent<DiagramTold>) {
      if (!element.isConnected) return removeEventListener("message", heard);
      if (source !== element.contentWindow) return;
      if (data.id === 0) done();
      else waiting.get(data.id)?.done(data);
    });
  });
  document.body.append(element);
  return { element, ready };
}

/** Remove the frame, which ends whatever it is doing. The next diagram gets a new one. */
function close(why: Error) {
  frame?.element.remove();
  frame = null;
  for (const { failed } of [...waiting.values()]) failed(why);
}
