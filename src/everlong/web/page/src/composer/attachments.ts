/** Pictures and text files that go with a message. */
import type { Picture, TextFile } from "../api";

export type Attachment =
  | { kind: "picture"; picture: Picture; preview: string }
  | { kind: "file"; file: TextFile };

/** Why a file was not taken. */
export type Refusal = "composer.too_large" | "composer.not_text";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGEST_PICTURE = 10 * 1024 * 1024; // bytes
const LARGEST_TEXT = 4 * 1024 * 1024;

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** A chosen, pasted or dropped file as an attachment, or why it cannot be one. */
export async function readAttachment(file: File): Promise<Attachment | Refusal> {
  if (PICTURES.has(file.type)) {
    if (file.size > LARGEST_PICTURE) return "composer.too_large";
    const preview = await dataUrl(file);
    const data = preview.slice(preview.indexOf(",") + 1);
    return { kind: "picture", preview, picture: { name: file.name, media_type: file.type, data } };
  }
  if (file.size > LARGEST_TEXT) return "composer.too_large";
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? "composer.not_text" : { kind: "file", file: { name: file.name, text } };
  } catch {
    return "composer.not_text";
  }
}

export function nameOf(attachment: Attachment): string {
  return attachment.kind === "picture" ? attachment.picture.name : attachment.file.name;
}
