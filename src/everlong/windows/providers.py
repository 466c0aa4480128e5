"""Providers of models: one name for each, the makers of each model, and the servers that people run themselves.

Tables only. A bare model name means the maker's own service; resellers may have other limits.
"""

__all__ = ["REGIONAL", "SELF_HOSTED", "canonical", "makers_of"]

#: Other spellings of a provider, in lower case with dashes -> the name used here, which is that of models.dev.
ALIASES = {
    "ai-studio": "google",
    "aliyun": "alibaba",
    "amazon": "amazon-bedrock",
    "aws": "amazon-bedrock",
    "azure-ai": "azure",
    "azure-openai": "azure",
    "azure-text": "azure",
    "bedrock": "amazon-bedrock",
    "bedrock-converse": "amazon-bedrock",
    "bedrock-mantle": "amazon-bedrock",
    "bigmodel": "zhipuai",
    "claude": "anthropic",
    "cohere-chat": "cohere",
    "copilot": "github-copilot",
    "dashscope": "alibaba",
    "deepseek-ai": "deepseek",
    "fireworks": "fireworks-ai",
    "friendliai": "friendli",
    "gemini": "google",
    "gmi": "gmicloud",
    "google-ai-studio": "google",
    "google-genai": "google",
    "google-vertex-anthropic": "google-vertex",
    "google-vertexai": "google-vertex",
    "grok": "xai",
    "kimi": "moonshotai",
    "lm-studio": "lmstudio",
    "meta": "llama",
    "meta-llama": "llama",
    "minimaxai": "minimax",
    "mistral-ai": "mistral",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "novita": "novita-ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "qwen": "alibaba",
    "snowflake": "snowflake-cortex",
    "stepfun-ai": "stepfun",
    "text-completion-codestral": "mistral",
    "text-completion-inception": "inception",
    "text-completion-openai": "openai",
    "together": "togetherai",
    "together-ai": "togetherai",
    "vercel-ai-gateway": "vercel",
    "vertex": "google-vertex",
    "vertexai": "google-vertex",
    "x-ai": "xai",
    "xiaomi-mimo": "xiaomi",
    "xiaomimimo": "xiaomi",
    "z-ai": "zai",
    "z.ai": "zai",
    "zai-org": "zai",
    "zhipu": "zhipuai",
}

#: Beginnings of model names -> the makers' own services; the first one that lists the model counts.
FAMILIES = (
    (("claude",), ("anthropic",)),
    (("gpt", "chatgpt", "codex", "davinci", "babbage", "o1", "o3", "o4"), ("openai",)),
    (("gemini", "gemma", "learnlm"), ("google",)),
    (("deepseek",), ("deepseek",)),
    (("qwen", "qwq", "qvq", "tongyi"), ("alibaba", "alibaba-cn")),
    (("kimi", "moonshot"), ("moonshotai", "moonshotai-cn")),
    (("minimax", "abab"), ("minimax", "minimax-cn")),
    (("glm", "chatglm", "codegeex"), ("zai", "zhipuai")),
    (("grok",), ("xai",)),
    (
        ("mistral", "mixtral", "codestral", "ministral", "devstral", "magistral", "pixtral", "open-mi"),
        ("mistral",),
    ),
    (("command", "c4ai", "aya", "north"), ("cohere",)),
    (("llama",), ("llama",)),
    (("nova", "titan"), ("amazon-bedrock", "nova")),
    (("sonar",), ("perplexity",)),
    (("mimo",), ("xiaomi",)),
    (("step",), ("stepfun",)),
    (("hunyuan", "hy"), ("tencent", "tencent-tokenhub")),
    (("doubao", "seed"), ("volcengine",)),
    (("nemotron",), ("nvidia",)),
    (("jamba",), ("ai21",)),
    (("solar",), ("upstage",)),
    (("mercury",), ("inception",)),
)

#: Servers that people run themselves. The server decides the window, whatever the model supports.
SELF_HOSTED = frozenset(
    (
        "custom",
        "jan",
        "lemonade",
        "llama-cpp",
        "llamacpp",
        "lmstudio",
        "local",
        "localai",
        "mlx",
        "ollama",
        "sglang",
        "tgi",
        "vllm",
        "xinference",
    )
)

#: Providers that list a model once per region.
REGIONAL = frozenset(("amazon-bedrock", "azure", "google-vertex"))


def canonical(provider: str) -> str:
    """Return our name for a provider; unknown names stay. Example: "vertex_ai-anthropic_models" -> "google-vertex"."""
    name = provider.strip().lower().replace("_", "-").replace(" ", "-")
    return "google-vertex" if name.startswith("vertex-ai") else ALIASES.get(name, name)


def makers_of(key: str) -> tuple[str, ...]:
    """Return the makers' own services for the key of a model. Example: "qwen3-max" -> ("alibaba", "alibaba-cn")."""
    for beginnings, makers in FAMILIES:
        if key.startswith(beginnings):
            return makers
    return ()
