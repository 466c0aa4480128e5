// opencode: a plugin that fits the messages of every request. "plugin": ["everlong"] in opencode.json.

import { Keeper, RECALL_DESCRIPTION, RECALL_WHAT, type Door, type DoorOptions } from "./keeper.js";
import { contentOf, json, parsed, picture, textOf, type Block, type WireMessage } from "./wire.js";

/** A message of opencode with its parts, as far as they are looked at. */
export interface OpencodeMessage {
  info: OpencodeInfo;
  parts: OpencodePart[];
}

interface OpencodeInfo {
  id: string;
  sessionID: string;
  role: "user" | "assistant";
  time: { created: number };
  agent?: string;
  /** Of what a user said. */
  model?: { providerID: string; modelID: string };
  /** Of an answer. */
  providerID?: string;
  modelID?: string;
  tokens?: { input: number; output: number; cache: { read: number; write: number } };
}

interface OpencodePart {
  id: string;
  sessionID: string;
  messageID: string;
  type: string;
  text?: string;
  ignored?: boolean;
  synthetic?: boolean;
  mime?: string;
  url?: string;
  filename?: string;
  callID?: string;
  tool?: string;
  state?: { status: string; input?: unknown; output?: string; error?: string; time?: { compacted?: number } };
}

interface Limits {
  context?: number;
  output?: number;
}

interface OpencodeModel {
  id: string;
  limit?: Limits;
}

interface Provider {
  id: string;
  models?: Record<string, OpencodeModel>;
}

interface PluginInput {
  client?: { config?: { providers?: () => Promise<{ data?: { providers?: Provider[] } }> } };
}

const LONGEST_ANSWER = 32_000; // tokens; opencode asks for no more
const UNKNOWN_FRONT = 12_000; // tokens of system text and tools, before they are known

/** The plugin. Options: `url`, `key`, `window`, `preset`, `pins`, `recall`. */
export const EverlongPlugin = async ({ client }: PluginInput, options: DoorOptions = {}) => {
  const keeper = new Keeper(options);
  const tools = new Map<string, unknown>();
  const systems = new Map<string, string>();
  const limits = new Map<string, Limits>();

  async function limitsOf(provider: string, model: string): Promise<Limits> {
    if (!limits.size) {
      const known = await client?.config?.providers?.().catch(() => undefined);
      for (const each of known?.data?.providers ?? []) {
        for (const [name, { limit }] of Object.entries(each.models ?? {})) limits.set(`${each.id}/${name}`, limit ?? {});
      }
    }
    return limits.get(`${provider}/${model}`) ?? {};
  }

  return {
    // opencode's own compaction would shorten what is short already, and its pruning breaks the cached prefix.
    config: async (config: { compaction?: Record<string, unknown> }) => {
      config.compaction = { ...config.compaction, auto: false, prune: false };
    },

    "tool.definition": async ({ toolID }: { toolID: string }, told: { description: string; parameters: unknown }) => {
      tools.set(toolID, { type: "function", function: { name: toolID, description: told.description, parameters: plain(told) } });
    },

    "experimental.chat.system.transform": async ({ sessionID }: { sessionID?: string }, told: { system: string[] }) => {
      if (sessionID) systems.set(sessionID, told.system.join("\n"));
    },

    "experimental.chat.messages.transform": async (_: unknown, output: { messages: OpencodeMessage[] }) => {
      const asked = output.messages.findLast(({ info }) => info.role === "user")?.info;
      if (!asked) return;
      const { providerID = "", modelID = "" } = asked.model ?? {};
      const known = await limitsOf(providerID, modelID);
      const system = systems.get(asked.sessionID);
      const usage = system === undefined ? undefined : output.messages.findLast(({ info }) => info.tokens?.input)?.info.tokens;
      const answer = Math.min(known.output || LONGEST_ANSWER, LONGEST_ANSWER);
      const kept = await keeper.fit(door, output.messages, {
        thread: `opencode ${asked.sessionID}`,
        model: modelID,
        provider: providerID,
        ...(known.context ? { window: options.window ?? known.context } : {}),
        ...(known.output ? { max_tokens: answer + (system === undefined ? UNKNOWN_FRONT : 0) } : {}),
        ...(system === undefined ? {} : { system, tools: [...tools.values()] }),
        ...(usage ? { usage: usageOf(usage) } : {}),
      });
      output.messages.splice(0, output.messages.length, ...kept.items);
    },

    ...(options.recall === false
      ? {}
      : {
          tool: {
            recall: {
              description: RECALL_DESCRIPTION,
              args: { what: RECALL_WHAT } as never,
              execute: ({ what }: { what: string }, { sessionID }: { sessionID: string }) =>
                keeper.recalled(`opencode ${sessionID}`, what),
            },
          },
        }),
  };
};

export default { id: "everlong", server: EverlongPlugin };

const usageOf = ({ input, output, cache }: NonNullable<OpencodeInfo["tokens"]>) => ({
  prompt: input + cache.read + cache.write,
  cached: cache.read,
  output,
});

/** The parameters of a tool where they are plain JSON; of other kinds only the description is counted. */
function plain({ parameters }: { parameters: unknown }): unknown {
  const type = (parameters as { type?: unknown } | undefined)?.type;
  return typeof type === "string" ? parameters : { type: "object" };
}

// --- its messages ----------------------------------------------------------------------------------

export const door: Door<OpencodeMessage> = {
  read({ info, parts }) {
    if (info.role === "user") {
      const blocks = parts.flatMap(blockOf);
      return blocks.length ? [{ role: "user", content: contentOf(blocks) }] : [];
    }
    const message = spoken(parts);
    const calls = parts.filter((part) => part.type === "tool");
    if (!message.content && !calls.length) return [];
    return [message, ...calls.map((part): WireMessage => ({ role: "tool", tool_call_id: part.callID ?? "", content: resultOf(part) }))];
  },

  patch(item, kept) {
    const words = kept.filter((each) => each.role !== "tool");
    const results = new Map(kept.map((each) => [each.tool_call_id, each]));
    const calls = new Map(words.flatMap((each) => each.tool_calls ?? []).map((call) => [call.id, call]));
    const text = words.map(textOf).join("\n");
    const changed = text !== wordsIn(item);
    const keepsThoughts = words.some((each) => each.reasoning_content !== undefined);
    let said = false;
    const parts = item.parts.flatMap((part): OpencodePart[] => {
      if (part.type === "reasoning") return keepsThoughts ? [part] : [];
      if (part.type === "tool") {
        const call = calls.get(part.callID ?? "");
        return call ? [withResult(part, call.function.arguments, results.get(part.callID))] : [];
      }
      if (part.type !== "text" || part.ignored || !changed) return [part];
      if (said || !text) return [];
      said = true;
      return [{ ...part, text }];
    });
    return parts.length ? { ...item, parts } : undefined;
  },

  make(message, like) {
    const { sessionID, time, agent, model, providerID = "", modelID = "" } = like.info;
    const id = `${like.info.id}_everlong`;
    const info: OpencodeInfo = { id, sessionID, role: "user", time, agent: agent ?? "build", model: model ?? { providerID, modelID } };
    return { info, parts: [{ id: `${id}_text`, sessionID, messageID: id, type: "text", synthetic: true, text: textOf(message) }] };
  },
};

const wordsIn = ({ info, parts }: OpencodeMessage): string =>
  info.role === "user" ? textOf({ role: "user", content: parts.flatMap(blockOf) }) : textOf(spoken(parts));

function spoken(parts: OpencodePart[]): WireMessage {
  const calls = parts.filter((part) => part.type === "tool");
  const thoughts = parts.filter((part) => part.type === "reasoning").map((part) => part.text ?? "");
  const words = parts.filter((part) => part.type === "text" && !part.ignored).map((part) => part.text ?? "");
  return {
    role: "assistant",
    content: words.filter(Boolean).join("\n"),
    ...(thoughts.length ? { reasoning_content: thoughts.join("\n") } : {}),
    ...(calls.length
      ? {
          tool_calls: calls.map((part) => ({
            id: part.callID ?? "",
            type: "function" as const,
            function: { name: part.tool ?? "", arguments: json(part.state?.input ?? {}) },
          })),
        }
      : {}),
  };
}

function blockOf(part: OpencodePart): Block[] {
  if (part.type === "text") return part.ignored ? [] : [{ type: "text", text: part.text ?? "" }];
  if (part.type === "compaction" || part.type === "subtask") return [{ type: "text", text: part.text ?? part.type }];
  if (part.type !== "file" || !part.url || part.mime?.startsWith("text/") || part.mime === "application/x-directory") return [];
  if (part.mime?.startsWith("image/")) return [picture(part.url, part.mime)];
  return [{ type: "file", file: { ...(part.filename ? { filename: part.filename } : {}), file_data: part.url } }];
}

function resultOf({ state }: OpencodePart): string {
  if (state?.time?.compacted) return "[Old tool result content cleared]";
  return state?.output ?? state?.error ?? "[Tool execution was interrupted]";
}

function withResult(part: OpencodePart, given: string, kept: WireMessage | undefined): OpencodePart {
  const { state } = part;
  if (!state) return part;
  const input = given === json(state.input ?? {}) ? state.input : parsed(given);
  const same = kept === undefined || textOf(kept) === resultOf(part);
  if (same && input === state.input) return part;
  const result = same ? {} : state.error === undefined ? { output: textOf(kept) } : { error: textOf(kept) };
  return { ...part, state: { ...state, input, ...result } };
}
