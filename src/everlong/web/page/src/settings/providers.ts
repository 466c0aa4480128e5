/** The providers that can be chosen by name; anything else is given by its address. */

export interface Provider {
  id: string;
  label: string;
  url: string;
  format: string;
}

export const PROVIDERS: readonly Provider[] = [
  { id: "anthropic", label: "Anthropic", url: "https://api.anthropic.com/v1", format: "anthropic" },
  { id: "openai", label: "OpenAI", url: "https://api.openai.com/v1", format: "openai-chat" },
  { id: "google", label: "Google Gemini", url: "https://generativelanguage.googleapis.com/v1beta", format: "gemini" },
  { id: "openrouter", label: "OpenRouter", url: "https://openrouter.ai/api/v1", format: "openai-chat" },
  { id: "deepseek", label: "DeepSeek", url: "https://api.deepseek.com/v1", format: "openai-chat" },
  { id: "moonshotai", label: "Moonshot · Kimi", url: "https://api.moonshot.cn/v1", format: "openai-chat" },
  {
    id: "alibaba",
    label: "Alibaba · Qwen",
    url: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    format: "openai-chat",
  },
  { id: "zhipuai", label: "Zhipu · GLM", url: "https://open.bigmodel.cn/api/paas/v4", format: "openai-chat" },
  { id: "groq", label: "Groq", url: "https://api.groq.com/openai/v1", format: "openai-chat" },
  { id: "mistral", label: "Mistral", url: "https://api.mistral.ai/v1", format: "openai-chat" },
  { id: "xai", label: "xAI", url: "https://api.x.ai/v1", format: "openai-chat" },
];

/** Formats of a server given by its address. */
export const FORMATS = [
  { id: "openai-chat", label: "OpenAI Chat Completions" },
  { id: "openai-responses", label: "OpenAI Responses" },
  { id: "anthropic", label: "Anthropic Messages" },
  { id: "gemini", label: "Gemini" },
] as const;

/** Where a server on this machine usually listens; a hint in an empty field. */
export const USUAL_SERVER = "http://127.0.0.1:11434/v1";
