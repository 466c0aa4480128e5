// Mastra's ObservationalMemory, fed with a conversation that grows: messages come in as JSON lines, and go out as the
// system message that it makes of its observations and the ids of the messages that it left as they are.
//
//   {"thread": "1", "messageTokens": 3000, "observationTokens": 4000}   begins one
//   {"thread": "1", "messages": [message, …]}                           observes what is due
//   {"left": [id, …], "context": "…"}                                   its answer
//
// Where it asks its model, {"ask": "…"} goes out, and the next line, {"answer": "…"}, is what the model says.
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.argv[2]}/`)
const { ObservationalMemory } = await import(pathToFileURL(require.resolve('@mastra/memory/processors')))
const { LibSQLStore } = await import(pathToFileURL(require.resolve('@mastra/libsql')))

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const say = value => process.stdout.write(`${JSON.stringify(value)}\n`)
const heard = async () => JSON.parse((await lines.next()).value)

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
const words = content => (typeof content === 'string' ? content : content.map(part => part.text ?? '').join('\n'))

async function answer({ prompt }) {
  const asked = prompt.filter(message => message.role === 'user').map(message => words(message.content))
  say({ ask: asked.join('\n') })
  return `<observations>\n${(await heard()).answer}\n</observations>`
}

const model = {
  specificationVersion: 'v2',
  provider: 'lab',
  modelId: 'quotes',
  supportedUrls: {},
  async doGenerate(options) {
    return { content: [{ type: 'text', text: await answer(options) }], finishReason: 'stop', usage, warnings: [] }
  },
  async doStream(options) {
    const text = await answer(options)
    const parts = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: text },
      { type: 'text-end', id: '0' },
      { type: 'finish', finishReason: 'stop', usage },
    ]
    return { stream: ReadableStream.from(parts) }
  },
}

const storage = new LibSQLStore({ id: 'lab', url: ':memory:' })
await storage.init()
const memories = new Map()
const resourceId = 'user'

for (;;) {
  const { value, done } = await lines.next()
  if (done) break
  const { thread: threadId, messages, messageTokens, observationTokens } = JSON.parse(value)
  if (messages === undefined) {
    const observation = { messageTokens, bufferTokens: false, previousObserverTokens: 0 }
    const reflection = { observationTokens }
    memories.set(threadId, new ObservationalMemory({ storage: storage.stores.memory, model, observation, reflection }))
    continue
  }
  const memory = memories.get(threadId)
  const held = messages.map(message => ({ ...message, createdAt: new Date(message.createdAt), threadId, resourceId }))
  await memory.observe({ threadId, resourceId, messages: held })
  const left = await memory.pruneObserved({ threadId, resourceId, messages: held })
  const context = await memory.buildContextSystemMessage({ threadId, resourceId })
  say({ left: left.map(message => message.id), context: context ?? '' })
}
