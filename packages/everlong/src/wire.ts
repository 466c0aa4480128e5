// Messages as /everlong/fit reads them: OpenAI's chat format, in which every door writes its own.

/** A part of what somebody said. */
export type Block =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename?: string; file_data?: string } };

export interface WireCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface WireMessage {
  role: "system" | "user" | "assistant" | "tool";
  content?: string | Block[] | null;
  tool_calls?: WireCall[];
  tool_call_id?: string;
  reasoning_content?: string;
}

/** The words of a message, without its pictures. */
export function textOf(message: WireMessage): string {
  const { content } = message;
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** One text, or blocks where there is more than one text. */
export function contentOf(blocks: Block[]): string | Block[] {
  const [only] = blocks;
  return blocks.length === 1 && only?.type === "text" ? only.text : blocks;
}

/** A picture by its address, or by its bytes in base64. */
export function picture(data: string, mediaType = "image/png"): Block {
  const url = /^(https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`;
  return { type: "image_url", image_url: { url } };
}

export const json = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** The arguments of a call as a value; text that is not JSON stays text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
