// Vercel AI SDK: generateText or streamText with a tool and many steps, on its OpenAI or Anthropic provider.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { build } from "./npm_package.mjs";

// Packages lie in a folder of their own, not beside this file.
const from = createRequire(process.env.NODE_PATH + "/here.js");
const load = (name) => import(pathToFileURL(from.resolve(name)).href);
const { generateText, isStepCount, pruneMessages, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { z } = await load("zod");

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const [dialect, stream] = job.mode.split(" ");
const openai = createOpenAI({ baseURL: `${job.address}/v1`, apiKey: "key" });
const anthropic = createAnthropic({ baseURL: `${job.address}/v1`, apiKey: "key" });
const model = { chat: openai.chat, responses: openai.responses, messages: anthropic }[dialect](job.model);
const steps = isStepCount ?? stepCountIs;

const read_file = tool({
  description: "Read a text file.",
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => readFileSync(path, "utf8"),
});

/** How the messages are kept within the window: by ours, by what the SDK has, by nothing. */
async function kept() {
  if (job.how === "everlong") {
    const package_ = build(`${process.cwd()}/../everlong`);
    const { everlong } = await import(pathToFileURL(`${package_}/dist/ai-sdk.js`).href);
    const window = job.window === null ? {} : { window: job.window };
    return everlong({ url: job.everlong, maxOutputTokens: 1000, ...window });
  }
  if (job.how === "own") {
    const toolCalls = "before-last-4-messages";
    return { prepareStep: ({ messages }) => ({ messages: pruneMessages({ messages, toolCalls, reasoning: "all" }) }), tools: {} };
  }
  return { prepareStep: undefined, tools: {} };
}

const answers = [];
const messages = [];
let memory;
try {
  memory = await kept();
  for (const prompt of job.prompts) {
    messages.push({ role: "user", content: prompt });
    const request = {
      model,
      system: "You are a careful clerk.",
      messages,
      tools: { ...memory.tools, read_file },
      prepareStep: memory.prepareStep,
      stopWhen: steps(40),
      maxRetries: 0,
      maxOutputTokens: 1000,
    };
    let result;
    if (stream) {
      let failure;
      result = streamText({ ...request, onError: ({ error }) => { failure = error; } });
      await result.consumeStream();
      if (failure) throw failure;
    } else {
      result = await generateText(request);
    }
    messages.push(...(await result.responseMessages));
    answers.push(await result.text);
  }
} catch (error) {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
} finally {
  const { version } = JSON.parse(readFileSync(`${process.env.NODE_PATH}/ai/package.json`, "utf8"));
  console.log(JSON.stringify({ version, answers, compactions: memory?.state?.compactions ?? null }));
}
