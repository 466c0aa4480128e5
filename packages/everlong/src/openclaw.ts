// OpenClaw: a context engine that asks `everlong serve` for the messages of every run.

import { Keeper, RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, type Door, type DoorOptions } from "./keeper.js";
import { contentOf, json, parsed, picture, textOf, type Block, type WireMessage } from "./wire.js";

/** A message of OpenClaw, as far as it is looked at. */
export interface ClawMessage {
  role: string;
  content?: string | ClawPart[];
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  timestamp?: number;
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number };
}

interface ClawPart {
  type: string;
  text?: string;
  thinking?: string;
  id?: string;
  name?: string;
  arguments?: unknown;
  data?: string;
  mimeType?: string;
}

interface Run {
  sessionId: string;
  sessionKey?: string;
  tokenBudget?: number;
}

interface Assembling extends Run {
  messages: ClawMessage[];
  model?: string;
}

interface PluginApi {
  pluginConfig?: unknown;
  registerContextEngine(id: string, factory: () => unknown): void;
  registerTool(factory: (context: { sessionId?: string; sessionKey?: string }) => unknown, options: { name: string }): void;
}

const ID = "everlong";
const MOST_COMMITTED = 1_000; // turns whose keys are remembered

export function register(api: PluginApi): void {
  const options = (api.pluginConfig ?? {}) as DoorOptions;
  const keeper = new Keeper(options);
  const committed = new Set<string>();
  /** What the next run of a session has to make do with, after a refusal. */
  const smaller = new Map<string, number>();

  api.registerContextEngine(ID, () => ({
    info: {
      id: ID,
      name: "Everlong",
      ownsCompaction: true,
      acceptedHostParams: ["sessionKey"],
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    },

    // Every run brings all messages: there is nothing to store, and nothing to lose.
    ingest: async () => ({ ingested: false }),

    async assemble({ messages, tokenBudget, model, ...run }: Assembling) {
      const thread = threadOf(run);
      const budget = Math.min(smaller.get(thread) ?? Infinity, tokenBudget ?? Infinity);
      const kept = await keeper.fit(door, messages, {
        thread,
        ...(model ? { model: model.slice(model.indexOf("/") + 1) } : {}),
        ...(Number.isFinite(budget) ? { budget: Math.floor(budget) } : {}),
      });
      return { messages: kept.items, estimatedTokens: kept.tokens };
    },

    // After an overflow, or because somebody asks for it: the next run is given less.
    async compact({ tokenBudget, currentTokenCount, ...run }: Run & { currentTokenCount?: number }) {
      const thread = threadOf(run);
      const before = currentTokenCount ?? tokenBudget ?? 0;
      const after = Math.floor(0.6 * Math.min(smaller.get(thread) ?? Infinity, before || Infinity, tokenBudget ?? Infinity));
      if (!Number.isFinite(after)) return { ok: true, compacted: false, reason: "the size of the window is not known" };
      smaller.set(thread, after);
      return { ok: true, compacted: true, result: { tokensBefore: before, tokensAfter: after } };
    },

    async commitTurn({ advancementKey }: { advancementKey: string }) {
      const status = committed.has(advancementKey) ? "duplicate" : "committed";
      committed.add(advancementKey);
      for (const oldest of committed) {
        if (committed.size <= MOST_COMMITTED) break;
        committed.delete(oldest);
      }
      return { status };
    },
  }));

  if (options.recall === false) return;
  api.registerTool(
    (context) => ({
      name: RECALL,
      label: "Recall",
      description: RECALL_DESCRIPTION,
      parameters: RECALL_PARAMETERS,
      async execute(_: string, { what, start }: { what: string; start?: number }) {
        const text = await keeper.recalled(threadOf(context), what, start ?? 0);
        return { content: [{ type: "text", text }], details: {} };
      },
    }),
    { name: RECALL },
  );
}

export default { id: ID, name: "Everlong", description: "Keeps sessions going past the context window.", register };

const threadOf = ({ sessionId, sessionKey }: { sessionId?: string; sessionKey?: string }): string =>
  `openclaw ${sessionKey ?? sessionId ?? ""}`.slice(0, 200);

// --- its messages ----------------------------------------------------------------------------------

export const door: Door<ClawMessage> = {
  read(message) {
    const { role, content = "" } = message;
    if (role === "toolResult") return [{ role: "tool", tool_call_id: message.toolCallId ?? "", content: contentIn(content) }];
    if (role === "assistant") return typeof content === "string" ? [{ role, content }] : [spoken(content)];
    return [{ role: role === "system" ? "system" : "user", content: contentIn(content) }];
  },

  patch(message, kept) {
    const [first] = kept;
    if (!first) return undefined;
    if (message.role !== "assistant") return { ...message, content: [{ type: "text", text: textOf(first) }] };
    const before = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? []);
    const calls = new Map((first.tool_calls ?? []).map((call) => [call.id, call]));
    const changed = textOf(first) !== textOf(spoken(before));
    let said = false;
    const content = before.flatMap((part): ClawPart[] => {
      if (part.type === "thinking") return first.reasoning_content === undefined ? [] : [part];
      if (part.type === "toolCall") {
        const call = calls.get(part.id ?? "");
        if (!call) return [];
        return call.function.arguments === json(part.arguments ?? {}) ? [part] : [{ ...part, arguments: parsed(call.function.arguments) }];
      }
      if (part.type !== "text" || !changed) return [part];
      if (said || !textOf(first)) return [];
      said = true;
      return [{ ...part, text: textOf(first) }];
    });
    return content.length ? { ...message, content } : undefined;
  },

  make(message, like) {
    const content = [{ type: "text", text: textOf(message) }];
    return { role: "user", content, ...(like.timestamp === undefined ? {} : { timestamp: like.timestamp }) };
  },
};

function spoken(parts: ClawPart[]): WireMessage {
  const calls = parts.filter((part) => part.type === "toolCall");
  const thoughts = parts.filter((part) => part.type === "thinking").map((part) => part.thinking ?? "");
  const words = parts.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return {
    role: "assistant",
    content: words.filter(Boolean).join("\n"),
    ...(thoughts.length ? { reasoning_content: thoughts.join("\n") } : {}),
    ...(calls.length
      ? {
          tool_calls: calls.map((part) => ({
            id: part.id ?? "",
            type: "function" as const,
            function: { name: part.name ?? "", arguments: json(part.arguments ?? {}) },
          })),
        }
      : {}),
  };
}

function contentIn(content: string | ClawPart[]): string | Block[] {
  if (typeof content === "string") return content;
  return contentOf(
    content.map((part): Block => {
      if (part.type === "image") return picture(part.data ?? "", part.mimeType);
      return { type: "text", text: part.type === "text" ? (part.text ?? "") : JSON.stringify(part) };
    }),
  );
}
