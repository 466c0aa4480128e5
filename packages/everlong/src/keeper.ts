// What every door shares: a framework's own messages in, its own messages out. What was not touched is the same object.

import { Everlong, EverlongError, type ClientOptions, type FitRequest } from "./index.js";
import type { WireMessage } from "./wire.js";

export const RECALL = "recall";
export const RECALL_DESCRIPTION =
  "Return what was left out of this conversation: the original of a reference, or what matches a few words.";
export const RECALL_WHAT = { type: "string", description: "a reference, such as 3f0c9a1b7d2e4856, or a few words" };
export const RECALL_START = { type: "integer", description: "the first character to show, to read on in a long original" };
export const RECALL_PARAMETERS = {
  type: "object",
  properties: { what: RECALL_WHAT, start: RECALL_START },
  required: ["what"],
  additionalProperties: false,
};

export interface DoorOptions extends ClientOptions {
  /** The model's window in tokens, where you know better than the registry. */
  window?: number;
  /** How to compact: see docs/presets.md. */
  preset?: string;
  /** Texts that stay in every request. */
  pins?: string[];
  /** Whether markers name the recall tool; give it to the model, too. */
  recall?: boolean;
}

/** How a framework's messages are written for the engine, and how those that it changed are written back. */
export interface Door<Item> {
  /** One item may say several messages, such as the results of several tools; none if it is not for the model. */
  read(item: Item): WireMessage[];
  /** The item with other messages in place of its own, in order; undefined if nothing is left of it. */
  patch(item: Item, kept: WireMessage[]): Item | undefined;
  /** A new item: a summary, excerpts, what was recalled. `like` is the item that follows, or the last one. */
  make(message: WireMessage, like: Item): Item;
}

export interface Kept<Item> {
  items: Item[];
  tokens: number;
  compactions: number;
}

export class Keeper {
  readonly client: Everlong;

  constructor(readonly options: DoorOptions = {}) {
    this.client = new Everlong(options);
  }

  /** The items to send now. Errors of the engine are told once, and everything goes as it is, unless it is to throw. */
  async fit<Item>(
    door: Door<Item>,
    items: Item[],
    request: Omit<FitRequest<WireMessage>, "messages">,
  ): Promise<Kept<Item>> {
    const said = items.map((item) => door.read(item));
    const { window, preset, pins, recall = true } = this.options;
    const wanted = {
      ...(window === undefined ? {} : { window }),
      ...(preset === undefined ? {} : { preset }),
      ...(pins?.length && request.thread ? { pins } : {}),
      ...(recall && request.thread ? { recall_tool: RECALL } : {}),
      format: "openai-chat",
    };
    const messages = said.flat();
    if (!messages.length) return { items, tokens: 0, compactions: 0 };
    try {
      const fitted = await this.client.fit({ ...wanted, ...request, messages });
      if (fitted.warning) this.client.warnOnce(`everlong: ${fitted.warning}`);
      const woven = weave(door, items, said, fitted.messages, fitted.from);
      return { items: woven, tokens: fitted.tokens, compactions: fitted.compactions };
    } catch (error) {
      if (this.client.throws || !(error instanceof EverlongError)) throw error;
      this.client.warnOnce(`everlong: ${error.message}`);
      return { items, tokens: 0, compactions: 0 };
    }
  }

  /** The answer of the recall tool. */
  async recalled(thread: string, what: string, start = 0): Promise<string> {
    try {
      return (await this.client.recall(thread, what, { start })).text;
    } catch (error) {
      return `Nothing can be recalled: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}

/** The items that say these messages: the same objects where nothing was changed, others where something was. */
export function weave<Item>(
  door: Door<Item>,
  items: Item[],
  said: WireMessage[][],
  messages: WireMessage[],
  from: (number | null)[],
): Item[] {
  const owners = said.flatMap((each, at) => each.map(() => at));
  const starts = said.map((_, at) => said.slice(0, at).reduce((sum, each) => sum + each.length, 0));
  const byCall = callOwners(said);
  const out: Item[] = [];
  let at = 0;
  while (at < messages.length) {
    const owner = ownerOf(messages[at]!, from[at] ?? null, owners, byCall);
    if (owner === undefined) {
      const next = messages.slice(at).map((each, k) => ownerOf(each, from[at + k] ?? null, owners, byCall));
      const like = items[next.find((each) => each !== undefined) ?? items.length - 1]!;
      out.push(door.make(messages[at]!, like));
      at += 1;
      continue;
    }
    let end = at + 1;
    while (end < messages.length && ownerOf(messages[end]!, from[end] ?? null, owners, byCall) === owner) end += 1;
    const whole = said[owner]!.length === end - at && said[owner]!.every((_, k) => from[at + k] === starts[owner]! + k);
    const item = whole ? items[owner]! : door.patch(items[owner]!, messages.slice(at, end));
    if (item !== undefined) out.push(item);
    for (let next = owner + 1; next < items.length && !said[next]!.length; next += 1) out.push(items[next]!);
    at = end;
  }
  return out;
}

/** Which item a call or a result belongs to, by the id of the call. */
function callOwners(said: WireMessage[][]): Map<string, number> {
  const owners = new Map<string, number>();
  said.forEach((each, at) => {
    for (const message of each) {
      for (const call of message.tool_calls ?? []) owners.set(`call ${call.id}`, at);
      if (message.tool_call_id !== undefined) owners.set(`result ${message.tool_call_id}`, at);
    }
  });
  return owners;
}

function ownerOf(
  message: WireMessage,
  from: number | null,
  owners: number[],
  byCall: Map<string, number>,
): number | undefined {
  if (from !== null) return owners[from];
  const call = message.tool_calls?.[0]?.id;
  if (call !== undefined) return byCall.get(`call ${call}`);
  return message.tool_call_id === undefined ? undefined : byCall.get(`result ${message.tool_call_id}`);
}
