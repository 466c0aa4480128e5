// Vercel AI SDK: generateText or streamText with a tool and many steps, on its OpenAI or Anthropic provider.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Packages lie in a folder of their own, not beside this file.
const from = createRequire(process.env.NODE_PATH + "/here.js");
const load = (name) => import(pathToFileURL(from.resolve(name)).href);
const { generateText, streamText, stepCountIs, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { z } = await load("zod");

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const [dialect, stream] = given.mode.split(" ");
const openai = createOpenAI({ baseURL: `${given.address}/v1`, apiKey: "key" });
const anthropic = createAnthropic({ baseURL: `${given.address}/v1`, apiKey: "key" });
const model = { chat: openai.chat, responses: openai.responses, messages: anthropic }[dialect](given.model);

const read_file = tool({
  description: "Read a text file.",
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => readFileSync(path, "utf8"),
});

const answers = [];
const messages = [];
try {
  for (const prompt of given.prompts) {
    messages.push({ role: "user", content: prompt });
    const request = {
      model,
      system: "You are a careful clerk.",
      messages,
      tools: { read_file },
      stopWhen: stepCountIs(20),
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
  console.log(JSON.stringify({ version, answers }));
}
