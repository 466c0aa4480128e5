// Vercel AI SDK 5, 6 and 7: `prepareStep` fits the messages of every step, `tools.recall` brings back what left.

import { Keeper, RECALL_DESCRIPTION, RECALL_PARAMETERS, type Door, type DoorOptions } from "./keeper.js";
import { contentOf, json, parsed, picture, textOf, type Block, type WireMessage } from "./wire.js";

/** A message of the SDK, as far as it is looked at. */
export interface SdkMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | SdkPart[];
  providerOptions?: unknown;
}

interface SdkPart {
  type: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  output?: { type: string; value?: unknown; reason?: string };
  providerExecuted?: boolean;
  image?: unknown;
  data?: unknown;
  mediaType?: string;
  filename?: string;
}

export interface StepOptions {
  messages: unknown[];
  model?: unknown;
  instructions?: unknown;
  steps?: readonly { usage?: { inputTokens?: number | undefined; outputTokens?: number | undefined } }[];
}

export interface AiSdkOptions extends DoorOptions {
  /** The conversation's name; without one, everything that goes through this object is one conversation. */
  thread?: string;
  /** The model, where its own name is not the one in the registry. */
  model?: string;
  /** Tokens of the answer that you ask for. */
  maxOutputTokens?: number;
  /** System text that is given beside the messages, where the SDK does not show it (before version 7). */
  system?: string;
}

let runs = 0;

/** Keeps one conversation within the window of its model. */
export function everlong(options: AiSdkOptions = {}) {
  const keeper = new Keeper(options);
  const thread = options.thread ?? `ai-sdk ${Date.now().toString(36)} ${(runs += 1)}`;
  // What was given back the last time and all that it stands for: version 7 hands on what it was given.
  let sent: SdkMessage[] = [];
  let whole: SdkMessage[] = [];
  const state = { compactions: 0, tokens: 0 };

  async function prepareStep({ messages, model, steps = [], ...more }: StepOptions) {
    const now = messages as SdkMessage[];
    const goesOn = sent.length > 0 && sent.length <= now.length && sent.every((each, at) => same(each, now[at]));
    whole = goesOn ? [...whole, ...now.slice(sent.length)] : now;
    const usage = steps[steps.length - 1]?.usage;
    const instructions = options.system ?? (typeof more.instructions === "string" ? more.instructions : undefined);
    const kept = await keeper.fit(door, whole, {
      thread,
      ...named(options.model, model),
      ...(instructions === undefined ? {} : { system: instructions }),
      ...(options.maxOutputTokens === undefined ? {} : { max_tokens: options.maxOutputTokens }),
      ...(usage?.inputTokens ? { usage: { prompt: usage.inputTokens, output: usage.outputTokens ?? 0 } } : {}),
    });
    sent = kept.items;
    Object.assign(state, { compactions: kept.compactions, tokens: kept.tokens });
    // The SDK's own type is wider than what is looked at here; what comes back are its own objects and plain words.
    return { messages: kept.items as never[] };
  }

  const recall = {
    description: RECALL_DESCRIPTION,
    inputSchema: schema<{ what: string; start?: number }>(RECALL_PARAMETERS),
    execute: ({ what, start }: { what: string; start?: number }): Promise<string> => keeper.recalled(thread, what, start),
  };
  return { prepareStep, tools: { recall }, thread, state, client: keeper.client };
}

/** A JSON schema as the SDK knows it, without importing the SDK. */
function schema<T>(jsonSchema: unknown) {
  return {
    [Symbol.for("vercel.ai.schema")]: true,
    _type: undefined as T,
    jsonSchema,
    validate: (value: unknown) => ({ success: true as const, value: value as T }),
  } as never;
}

function named(given: string | undefined, model: unknown): { model?: string } {
  if (given !== undefined) return { model: given };
  if (typeof model === "string") return { model: model.slice(model.indexOf("/") + 1) };
  const id = (model as { modelId?: unknown } | undefined)?.modelId;
  return typeof id === "string" ? { model: id } : {};
}

function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

// --- its messages ----------------------------------------------------------------------------------

export const door: Door<SdkMessage> = {
  read(message) {
    const { role, content } = message;
    if (typeof content === "string") return [{ role: role === "tool" ? "user" : role, content }];
    if (role === "tool") return content.filter(isResult).map(resultOf);
    if (role === "assistant") return [spoken(content)];
    return [{ role, content: contentOf(content.map(blockOf)) }];
  },

  patch(message, kept) {
    const { content } = message;
    if (typeof content === "string" || message.role === "user" || message.role === "system") {
      return { ...message, content: kept.map(textOf).join("\n") };
    }
    if (message.role === "tool") {
      const texts = new Map(kept.map((each) => [each.tool_call_id, each]));
      const parts = content.flatMap((part) => (isResult(part) ? withResult(part, texts.get(part.toolCallId)) : [part]));
      return parts.length ? { ...message, content: parts } : undefined;
    }
    const parts = kept.flatMap((each) => withSpoken(content, each));
    return parts.length ? { ...message, content: parts } : undefined;
  },

  make(message) {
    if (message.role !== "tool") return { role: message.role, content: textOf(message) };
    const output = { type: "text", value: textOf(message) };
    return { role: "tool", content: [{ type: "tool-result", toolCallId: message.tool_call_id ?? "", toolName: "", output }] };
  },
};

const isResult = (part: SdkPart): boolean => part.type === "tool-result";

function spoken(parts: SdkPart[]): WireMessage {
  const calls = parts.filter((part) => part.type === "tool-call" && !part.providerExecuted);
  const thoughts = parts.filter((part) => part.type === "reasoning").map((part) => part.text ?? "");
  const words = parts.filter((part) => part.type !== "reasoning" && !calls.includes(part)).map(wordsOf);
  return {
    role: "assistant",
    content: words.filter(Boolean).join("\n"),
    ...(thoughts.length ? { reasoning_content: thoughts.join("\n") } : {}),
    ...(calls.length
      ? {
          tool_calls: calls.map((part) => ({
            id: part.toolCallId ?? "",
            type: "function" as const,
            function: { name: part.toolName ?? "", arguments: json(part.input ?? {}) },
          })),
        }
      : {}),
  };
}

/** What a part of an answer says: its text, or what a provider's own tool did. */
const wordsOf = (part: SdkPart): string => (part.type === "text" ? (part.text ?? "") : JSON.stringify(part));

/** The parts of an answer of which the engine kept some calls, or other words. */
function withSpoken(parts: SdkPart[], kept: WireMessage): SdkPart[] {
  const before = spoken(parts);
  const calls = new Map((kept.tool_calls ?? []).map((call) => [call.id, call]));
  const changed = textOf(kept) !== textOf(before);
  let said = false;
  return parts.flatMap((part) => {
    if (part.type === "reasoning") return kept.reasoning_content === undefined ? [] : [part];
    if (part.type === "tool-call" && !part.providerExecuted) {
      const call = calls.get(part.toolCallId ?? "");
      if (!call) return [];
      return call.function.arguments === json(part.input ?? {}) ? [part] : [{ ...part, input: parsed(call.function.arguments) }];
    }
    if (!changed) return [part];
    if (said || !textOf(kept)) return [];
    said = true;
    return [{ type: "text", text: textOf(kept) }];
  });
}

function resultOf(part: SdkPart): WireMessage {
  return { role: "tool", tool_call_id: part.toolCallId ?? "", content: outputOf(part.output) };
}

function outputOf(output: SdkPart["output"]): string | Block[] {
  if (!output) return "";
  if (output.type === "execution-denied") return output.reason ?? "execution denied";
  if (output.type !== "content" || !Array.isArray(output.value)) return json(output.value ?? "");
  return contentOf((output.value as SdkPart[]).map(blockOf));
}

function withResult(part: SdkPart, kept: WireMessage | undefined): SdkPart[] {
  if (!kept) return [];
  if (JSON.stringify(kept.content) === JSON.stringify(outputOf(part.output))) return [part];
  const failed = part.output?.type.startsWith("error");
  return [{ ...part, output: { type: failed ? "error-text" : "text", value: textOf(kept) } }];
}

function blockOf(part: SdkPart): Block {
  if (part.type === "text") return { type: "text", text: part.text ?? "" };
  const type = part.mediaType ?? (part.type.startsWith("image") ? "image/png" : "");
  const data = bytesOf(part.image ?? part.data ?? (part as { url?: unknown }).url);
  if (data === undefined) return { type: "text", text: JSON.stringify(part) };
  if (part.type.startsWith("image") || type.startsWith("image")) {
    return picture(data, type.includes("/") ? type : "image/png");
  }
  const file_data = /^(https?|data):/.test(data) ? data : `data:${type || "application/octet-stream"};base64,${data}`;
  return { type: "file", file: { ...(part.filename ? { filename: part.filename } : {}), file_data } };
}

/** An address or base64, of everything that the SDK takes as data; undefined for what only a provider holds. */
function bytesOf(data: unknown): string | undefined {
  if (typeof data === "string") return data;
  if (data instanceof URL) return data.href;
  if (data instanceof ArrayBuffer) return base64(new Uint8Array(data));
  if (data instanceof Uint8Array) return base64(data);
  const tagged = data as { type?: string; data?: unknown; url?: unknown; text?: string } | undefined;
  if (tagged?.type === "data") return bytesOf(tagged.data);
  if (tagged?.type === "url") return bytesOf(tagged.url);
  if (tagged?.type === "text") return base64(new TextEncoder().encode(tagged.text ?? ""));
  return undefined;
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
