/** Pictures and files that go with a message. The server reads the text of a file and says what it costs. */
import { api, ApiError, type FileText, type Picture, type Saying, type TextFile } from "../api";
import { t, type Key } from "../words";

export type Attachment =
  | { kind: "picture"; picture: Picture; preview: string; tokens?: number }
  /** `whole` is the text of the file in sections, `part` the first and last of those that are sent. */
  | { kind: "file"; file: TextFile; tokens?: number; whole?: FileText; part?: [number, number] };

export type FileAttachment = Extract<Attachment, { kind: "file" }>;

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGEST_PICTURE = 10 * 1024 * 1024; // bytes
const LARGEST_FILE = 32 * 1024 * 1024;

/** The words for a file whose text cannot be read, by the kind of the refusal. */
const REFUSALS: Record<string, Key> = {
  too_large: "composer.too_large",
  too_slow: "composer.too_large",
  not_text: "composer.not_text",
  no_text: "composer.no_text",
  encrypted: "composer.encrypted",
  old_office: "composer.old_office",
  damaged: "composer.damaged",
  documents_missing: "composer.documents_missing",
  offline: "failure.offline",
};

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** A chosen, pasted or dropped file as an attachment, or why it cannot be one. */
export async function readAttachment(file: File, model: string): Promise<Attachment | string> {
  const picture = PICTURES.has(file.type);
  if (file.size > (picture ? LARGEST_PICTURE : LARGEST_FILE)) return t("composer.too_large", { name: file.name });
  try {
    return picture ? await readPicture(file, model) : chosenPart(file.name, await api.readFile(file, model));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return t(REFUSALS[error.kind] ?? "composer.damaged", { name: file.name });
  }
}

async function readPicture(file: File, model: string): Promise<Attachment> {
  const preview = await dataUrl(file);
  const data = preview.slice(preview.indexOf(",") + 1);
  const { tokens } = await api.readFile(file, model);
  return { kind: "picture", preview, tokens, picture: { name: file.name, media_type: file.type, data } };
}

/** A file with some or all of its sections; the name says which. */
export function chosenPart(name: string, whole: FileText, part?: [number, number]): FileAttachment {
  const { sections } = whole;
  const [first, last] = part ?? [0, sections.length - 1];
  const chosen = sections.slice(first, last + 1);
  const some = chosen.length < sections.length;
  const from = chosen[0]?.label.split("–")[0] ?? "";
  const to = chosen.at(-1)?.label.split("–").at(-1) ?? "";
  return {
    kind: "file",
    whole,
    part: [first, last],
    tokens: chosen.reduce((sum, section) => sum + section.tokens, 0),
    file: {
      name: some ? `${name} (${t(`part.${whole.kind}`)} ${from === to ? from : `${from}–${to}`})` : name,
      text: chosen.map((section) => section.text).join(whole.kind === "text" ? "" : "\n\n"),
    },
  };
}

/** The attachments of a message that was already taken out of the field. */
export function attachmentsOf(saying: Saying): Attachment[] {
  return [
    ...saying.images.map((picture): Attachment => {
      return { kind: "picture", picture, preview: `data:${picture.media_type};base64,${picture.data}` };
    }),
    ...saying.files.map((file): Attachment => ({ kind: "file", file })),
  ];
}

export function nameOf(attachment: Attachment): string {
  return attachment.kind === "picture" ? attachment.picture.name : attachment.file.name;
}
