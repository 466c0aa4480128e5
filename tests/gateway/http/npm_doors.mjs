// The doors of the npm package, one after the other: run by test_npm_package.py with the folder of the built package.
import assert from "node:assert/strict";
import { test } from "node:test";

const folder = process.env.EVERLONG_PACKAGE;
const load = (name) => import(`${folder}/dist/${name}.js`);
const { Everlong, EverlongError } = await load("index");
const { weave } = await load("keeper");
const ai = await load("ai-sdk");
const opencode = await load("opencode");
const openclaw = await load("openclaw");

const WINDOW = 8_000;
const text = (n) => `file ${n} holds ${n * 7} barrels. ` + `Line of file ${n}. `.repeat(120);
const whole = (door, items) => {
  const said = items.map((item) => door.read(item));
  return [said, said.flat()];
};

// --- the same conversation in the words of each framework: two calls at once, a picture, thinking ---

const aiTurn = (n) => [
  { role: "user", content: [{ type: "text", text: `Question ${n}` }, { type: "image", image: new Uint8Array([1, 2, 3]) }] },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "s" } } },
      { type: "text", text: "I look.", providerOptions: { x: { y: 1 } } },
      { type: "tool-call", toolCallId: `${n}a`, toolName: "read", input: { n } },
      { type: "tool-call", toolCallId: `${n}b`, toolName: "read", input: { n } },
    ],
  },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: `${n}a`, toolName: "read", output: { type: "text", value: text(n) } },
      { type: "tool-result", toolCallId: `${n}b`, toolName: "read", output: { type: "json", value: { n } } },
    ],
  },
  { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] },
];
const info = (n, role) => ({ id: `msg_${n}_${role}`, sessionID: "ses_1", role, time: { created: n }, agent: "build", model: { providerID: "p", modelID: "m" } });
const part = (n, type, more) => ({ id: `prt_${n}_${type}`, sessionID: "ses_1", messageID: `msg_${n}`, type, ...more });
const state = (n, output) => ({ status: "completed", input: { n }, output, title: "t", metadata: { kept: true }, time: { start: 1, end: 2 } });
const opencodeTurn = (n) => [
  { info: info(n, "user"), parts: [part(n, "text", { text: `Question ${n}` }), part(n, "file", { mime: "image/png", url: "data:image/png;base64,AQID" })] },
  {
    info: info(n, "assistant"),
    parts: [
      part(n, "step-start", {}),
      part(n, "reasoning", { text: "hm" }),
      part(n, "text", { text: "I look." }),
      part(n, "tool", { callID: `${n}a`, tool: "read", state: state(n, text(n)) }),
      part(n, "tool", { callID: `${n}b`, tool: "read", state: state(n, "short") }),
    ],
  },
];
const clawTurn = (n) => [
  { role: "user", content: [{ type: "text", text: `Question ${n}` }, { type: "image", data: "AQID", mimeType: "image/png" }], timestamp: n },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "hm", thinkingSignature: "s" },
      { type: "text", text: "I look." },
      { type: "toolCall", id: `${n}a`, name: "read", arguments: { n } },
      { type: "toolCall", id: `${n}b`, name: "read", arguments: { n } },
    ],
    timestamp: n,
  },
  { role: "toolResult", toolCallId: `${n}a`, toolName: "read", content: [{ type: "text", text: text(n) }], isError: false, timestamp: n },
  { role: "toolResult", toolCallId: `${n}b`, toolName: "read", content: [{ type: "text", text: "short" }], isError: true, timestamp: n },
];
const DOORS = { "ai-sdk": [ai.door, aiTurn], opencode: [opencode.door, opencodeTurn], openclaw: [openclaw.door, clawTurn] };
const turns = (turn, count) => Array.from({ length: count }, (_, n) => turn(n)).flat();

for (const [name, [door, turn]] of Object.entries(DOORS)) {
  test(`${name}: what was not touched is the same object`, () => {
    const items = turns(turn, 3);
    const [said, messages] = whole(door, items);
    const woven = weave(door, items, said, messages, messages.map((_, at) => at));
    assert.equal(woven.length, items.length);
    woven.forEach((item, at) => assert.equal(item, items[at]));
  });

  test(`${name}: a shortened result changes that result alone`, () => {
    const items = turns(turn, 1);
    const [said, messages] = whole(door, items);
    const at = messages.findIndex((each) => each.role === "tool");
    const changed = messages.map((each, k) => (k === at ? { ...each, content: "shortened" } : each));
    const woven = weave(door, items, said, changed, messages.map((_, k) => (k === at ? null : k)));
    assert.equal(woven.length, items.length);
    const [, again] = whole(door, woven);
    assert.deepEqual(again.map((each) => each.role), messages.map((each) => each.role));
    const told = again.map((each) => (typeof each.content === "string" ? each.content : JSON.stringify(each.content)));
    assert.ok(told[at].includes("shortened"));
    again.forEach((each, k) => k === at || assert.deepEqual(each, messages[k]));
    assert.equal(JSON.stringify(items).includes("shortened"), false, "the framework's own objects are never changed");
  });

  test(`${name}: calls that left, and what was put in`, () => {
    const items = turns(turn, 2);
    const [said, messages] = whole(door, items);
    const first = messages.findIndex((each) => each.tool_calls);
    const one = { ...messages[first], tool_calls: messages[first].tool_calls.slice(1), reasoning_content: undefined };
    const kept = [messages[0], { role: "user", content: "what left" }, one, messages[first + 2], ...messages.slice(first + 3)];
    const from = [0, null, null, first + 2, ...messages.slice(first + 3).map((_, k) => first + 3 + k)];
    const [, again] = whole(door, weave(door, items, said, kept, from));
    assert.equal(JSON.stringify(again[1]).includes("what left"), true);
    assert.deepEqual(again[2].tool_calls.map((call) => call.id), ["0b"]);
    assert.deepEqual(again.slice(4), messages.slice(first + 3));
  });
}

// --- against a server ------------------------------------------------------------------------------

const url = process.env.EVERLONG_URL;

test("the client: fit, count, recall, pins, errors", async () => {
  const client = new Everlong();
  const messages = [{ role: "user", content: "Keep the log." }];
  for (let n = 0; n < 30; n += 1) messages.push({ role: "assistant", content: `Reading ${n}.` }, { role: "user", content: text(n) });
  const fitted = await client.fit({ messages, model: "gpt-4o", window: WINDOW, thread: "npm" });
  assert.ok(fitted.tokens <= WINDOW && fitted.edits.length && fitted.messages.length < messages.length);
  assert.ok((await client.count({ messages, model: "gpt-4o" })) > 2 * WINDOW);
  assert.match((await client.recall("npm", "file 3 barrels")).text, /file 3 holds 21 barrels/);
  const { pin } = await client.pin("npm", "Never promise a date.");
  assert.deepEqual((await client.pins("npm")).pins, [{ pin, text: "Never promise a date." }]);
  assert.deepEqual((await client.unpin("npm", pin)).pins, []);
  await assert.rejects(client.fit({ messages, budget: -1 }), (error) => error instanceof EverlongError && error.status === 400);
});

test("a server that does not answer costs one warning and nothing else", async () => {
  const lines = [];
  const client = new Everlong({ url: "http://127.0.0.1:9", warn: (line) => lines.push(line) });
  const messages = [{ role: "user", content: "hi" }];
  assert.equal((await client.fit({ messages })).messages, messages);
  assert.deepEqual((await client.fit({ messages })).from, [0]);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /everlong serve/);
  await assert.rejects(new Everlong({ url: "http://127.0.0.1:9", unreachable: "throw" }).fit({ messages }));
});

test("ai-sdk: steps of three windows, the prefix stable, what version 7 hands on and what version 5 resends", async () => {
  for (const handsOn of [true, false]) {
    const memory = ai.everlong({ window: WINDOW });
    let [given, before, breaks] = [[], [], 0];
    const all = [];
    for (let n = 0; n < 40; n += 1) {
      const turn = aiTurn(n).slice(n ? 1 : 0, 3);
      all.push(...turn);
      given.push(...turn);
      const { messages } = await memory.prepareStep({ messages: handsOn ? given : [...all], model: { modelId: "gpt-4o" }, steps: [] });
      breaks += JSON.stringify(messages.slice(0, before.length)) === JSON.stringify(before) ? 0 : 1;
      before = messages;
      if (handsOn) given = [...messages];
      assert.ok(memory.state.tokens <= WINDOW);
      assert.equal(messages.at(-1), turn.at(-1));
      assert.equal(messages[0], all[0]);
    }
    assert.ok(memory.state.compactions > 2);
    assert.equal(breaks, memory.state.compactions);
    assert.match(await memory.tools.recall.execute({ what: "file 3 barrels" }), /file 3 holds 21 barrels/);
  }
});

test("opencode: the plugin's hooks", async () => {
  const providers = async () => ({ data: { providers: [{ id: "p", models: { m: { limit: { context: WINDOW, output: 500 } } } }] } });
  const hooks = await opencode.EverlongPlugin({ client: { config: { providers } } }, { url });
  const config = {};
  await hooks.config(config);
  assert.deepEqual(config.compaction, { auto: false, prune: false });
  await hooks["tool.definition"]({ toolID: "read" }, { description: "Reads.", parameters: { type: "object" } });
  await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, { system: ["Be brief."] });
  const all = [];
  for (let n = 0; n < 30; n += 1) {
    all.push(...opencodeTurn(n));
    const output = { messages: [...all] };
    const list = output.messages;
    await hooks["experimental.chat.messages.transform"]({}, output);
    assert.equal(output.messages, list, "opencode goes on with the same list");
    assert.equal(list.at(-1), all.at(-1));
  }
  assert.match(await hooks.tool.recall.execute({ what: "file 3 barrels" }, { sessionID: "ses_1" }), /file 3 holds 21 barrels/);
});

test("openclaw: the context engine and its tool", async () => {
  const registered = {};
  openclaw.register({
    pluginConfig: { url, pins: ["Never promise a date."] },
    registerContextEngine: (id, factory) => Object.assign(registered, { id, engine: factory() }),
    registerTool: (factory) => Object.assign(registered, { tool: factory({ sessionKey: "s" }) }),
  });
  const { engine, tool } = registered;
  const messages = turns(clawTurn, 30);
  const run = { sessionId: "1", sessionKey: "s", messages, model: "openai/gpt-4o", tokenBudget: WINDOW };
  const first = await engine.assemble(run);
  assert.ok(first.estimatedTokens <= WINDOW && first.messages.length < messages.length);
  assert.equal(first.messages.at(-1), messages.at(-1));
  assert.ok(JSON.stringify(first.messages).includes("Never promise a date."));
  assert.deepEqual(await engine.compact({ sessionId: "1", sessionKey: "s", tokenBudget: WINDOW, currentTokenCount: 7_000 }), {
    ok: true,
    compacted: true,
    result: { tokensBefore: 7_000, tokensAfter: 4_200 },
  });
  assert.ok((await engine.assemble(run)).estimatedTokens <= 4_200);
  assert.deepEqual(await engine.commitTurn({ advancementKey: "k" }), { status: "committed" });
  assert.deepEqual(await engine.commitTurn({ advancementKey: "k" }), { status: "duplicate" });
  assert.match((await tool.execute("1", { what: "file 3 barrels" })).content[0].text, /file 3 holds 21 barrels/);
});
