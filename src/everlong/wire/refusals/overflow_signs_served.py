"""Wordings of overflows at self-hosted servers, and wordings that many share.

The rows are as in `overflow_signs`; the shared wordings come last because they are the least specific.
"""

from everlong.wire.refusals.overflow_signs import OverflowSign

__all__ = ["SERVED_SIGNS", "SHARED_SIGNS"]

#: Servers that people run themselves.
SERVED_SIGNS: tuple[OverflowSign, ...] = (
    OverflowSign(
        "vllm",
        r"maximum context length is <limit> tokens\. However, you requested <reply> output tokens and your "
        r"prompt contains (?:at least )?<prompt> input tokens",
        "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and "
        "your prompt "
        "contains at least 62466 input tokens, for a total of at least 128001 tokens. Please reduce the length of the "
        "input prompt or the number of requested output tokens.",
        128_000,
        128_001,
    ),
    OverflowSign(
        "vllm",
        r"maximum context length is <limit> tokens\. However, you requested \d+ output tokens and your prompt "
        r"contains \d+ characters",
        "This model's maximum context length is 32768 tokens. However, you requested 4096 output tokens and your "
        "prompt "
        "contains 200000 characters (more than 130688 characters, which is the upper bound for 28672 input tokens).",
        32_768,
    ),
    OverflowSign(
        "vllm",
        r"maximum context length is <limit> tokens\. However, your request has <requested> input tokens",
        "This model's maximum context length is 16384 tokens. However, your request has 19427 input tokens. "
        "Please reduce "
        "the length of the input messages.",
        16_384,
        19_427,
    ),
    OverflowSign(
        "vllm",
        r"too large: <reply>\. This model's maximum context length is <limit> tokens and your request has "
        r"<prompt> input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is "
        "32768 tokens "
        "and your request has 29000 input tokens (4096 > 32768 - 29000).",
        32_768,
        33_096,
    ),
    OverflowSign(
        "vllm",
        r"you passed <prompt> input tokens and requested <reply> output tokens\. However, the model's context "
        r"length is only <limit> tokens",
        "You passed 62466 input tokens and requested 65535 output tokens. However, the model's context length is only "
        "128000 tokens, resulting in a maximum input length of 62465 tokens.",
        128_000,
        128_001,
    ),
    OverflowSign(
        "vllm",
        r"prompt \(length <requested>\) is longer than the maximum model length of <limit>",
        "The decoder prompt (length 5951) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` "
        "is no smaller than the number of text tokens.",
        4_096,
        5_951,
    ),
    OverflowSign(
        "vllm",
        r"prompt \(total length <requested>\) is too long to fit into the model \(context length <limit>\)",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        4_096,
        25_938,
    ),
    OverflowSign(
        "vllm",
        r"input prompt \(<requested> tokens\) is too long and exceeds limit of <limit>",
        "Input prompt (35247 tokens) is too long and exceeds limit of 1000",
        1_000,
        35_247,
    ),
    OverflowSign(
        "vllm",
        r"prompt length <requested> exceeds the max_model_len <limit>",
        "The engine prompt length 40000 exceeds the max_model_len 32768. Please reduce prompt.",
        32_768,
        40_000,
    ),
    OverflowSign(
        "sglang",
        r"maximum context length of <limit> tokens\. You requested a total of <requested> tokens: <prompt> "
        r"tokens from the input messages and <reply> tokens",
        "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total "
        "of 71897 "
        "tokens: 7897 tokens from the input messages and 64000 tokens for the completion.",
        64_000,
        71_897,
    ),
    OverflowSign(
        "sglang",
        r"input length \(<requested> tokens\) exceeds the maximum allowed length \(<limit> tokens\)",
        "Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens). Use a shorter input or "
        "enable "
        "--allow-auto-truncate.",
        262_138,
        265_330,
    ),
    OverflowSign(
        "sglang",
        r"input \(<requested> tokens\) is longer than the model's context length \(<limit> tokens\)",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        262_144,
        516_368,
    ),
    OverflowSign(
        "tgi",
        r".inputs. tokens \+ .max_new_tokens. must be <= <limit>\. Given: <prompt> .inputs. tokens and <reply> "
        r".max_new_tokens.",
        "422 Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 28897 `inputs` tokens "
        "and 3872 `max_new_tokens`",
        32_768,
        32_769,
    ),
    OverflowSign(
        "tgi",
        r".inputs. must have less than <limit> tokens\. Given: <requested>",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
        4_096,
        4_545,
    ),
    OverflowSign(
        "llama.cpp",
        r"(?:request|prompt) \(<requested> tokens\) exceeds (?:the )?available context size \(<limit> tokens\)",
        "400 request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
        65_536,
        66_202,
    ),
    OverflowSign(
        "llama.cpp",
        r"exceeds (?:the )?available context size",
        "the request exceeds the available context size, try increasing it",
    ),
    OverflowSign("llama.cpp", r"context size has been exceeded", "500 Context size has been exceeded."),
    OverflowSign(
        "llama-cpp-python",
        r"requested tokens \(<requested>\) exceed context window of <limit>",
        "Requested tokens (5203) exceed context window of 4096",
        4_096,
        5_203,
    ),
    OverflowSign(
        "lm-studio",
        r"keep the first <requested> tokens when context the overflows…context length of only <limit> tokens",
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        4_096,
        15_857,
    ),
    OverflowSign(
        "lm-studio",
        r"greater than the context length \(n_keep: <requested> ?>= n_ctx: <limit>\)",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
        "23678>= n_ctx: "
        "9472). Try to load the model with a larger context length, or provide a shorter input.",
        9_472,
        23_678,
    ),
    OverflowSign(
        "lm-studio",
        r"initial prompt \(<requested>\) is greater than the context length \(<limit>\)",
        "The number of tokens to keep from the initial prompt (9800) is greater than the context length (8192).",
        8_192,
        9_800,
    ),
    OverflowSign(
        "lm-studio",
        r"greater than the context length",
        "tokens to keep from the initial prompt is greater than the context length",
    ),
    OverflowSign(
        "ollama",
        r"prompt too long; exceeded (?:max )?context length",
        "prompt too long; exceeded max context length by 4 tokens",
    ),
    OverflowSign(
        "ollama",
        r"input length exceeds (?:the )?(?:model's )?context length",
        "the input length exceeds the context length",
    ),
    OverflowSign(
        "ollama",
        r"prompt is longer than the context length",
        "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
        "context length in settings, or use a model with a longer context length",
    ),
    OverflowSign(
        "ollama", r"ollama error: context length exceeded", "ollama error: context length exceeded, too many tokens"
    ),
    OverflowSign("ollama", r"truncating input…too long", "truncating input prompt: too long for the context"),
    OverflowSign(
        "ds4",
        r"prompt has <requested> tokens, but the configured context size is <limit> tokens",
        "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
        256_000,
        5_958_968,
    ),
    OverflowSign(
        "vmlx",
        r"prompt has <requested> tokens, max prompt/context tokens is <limit>",
        "prompt_too_long: tokenized VLM text prompt has 20771 tokens, max prompt/context tokens is 20119",
        20_119,
        20_771,
    ),
    OverflowSign(
        "exllama",
        r"(?:prompt|context) length <requested> is greater than max_seq_len <limit>",
        "Prompt length 9120 is greater than max_seq_len 8192",
        8_192,
        9_120,
    ),
    OverflowSign(
        "transformers",
        r"input length of input_ids is <requested>, but .max_length. is set to <limit>",
        "Input length of input_ids is 2084, but `max_length` is set to 2048. This can lead to unexpected behavior.",
        2_048,
        2_084,
    ),
)

#: Wordings of several servers, and of gateways with their own texts.
SHARED_SIGNS: tuple[OverflowSign, ...] = (
    OverflowSign(
        "shared",
        r"input length \(<requested>\) exceeds (?:the )?model's maximum context length \(<limit>\)",
        "Input length (265330) exceeds model's maximum context length (262144).",
        262_144,
        265_330,
    ),
    OverflowSign(
        "shared",
        r"requested input length <requested> exceeds maximum input length <limit>",
        "Requested input length 20500 exceeds maximum input length 16384",
        16_384,
        20_500,
    ),
    OverflowSign(
        "shared",
        r"context window is <limit> tokens, you requested <requested> tokens",
        "Model context window is 128k tokens, you requested 256k tokens",
        128_000,
        256_000,
    ),
    OverflowSign(
        "shared",
        r"token count exceeded: <requested> > <limit>",
        "token count exceeded: 300,050 > 100,000. Please reduce the input/context.",
        100_000,
        300_050,
    ),
    OverflowSign(
        "shared",
        r"context window exceeded: requested <requested> tokens",
        "Context window exceeded: requested 12000 tokens",
        None,
        12_000,
    ),
    OverflowSign(
        "shared",
        r"input length <requested> tokens exceeds the model limit",
        "input length 14295 tokens exceeds the model limit",
        None,
        14_295,
    ),
    OverflowSign(
        "shared",
        r"(?:exceeds?|over|longer than) (?:the )?(?:model's )?(?:maximum )?context (?:length|limit) of <limit>",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        131_072,
    ),
    OverflowSign(
        "shared",
        r"(?:this|the) (?:model|endpoint)'?s maximum context length is <limit>(?: tokens)?",
        "Some text before, this model's maximum context length is 4096 tokens. Some text after.",
        4_096,
    ),
    OverflowSign(
        "shared",
        r"exceeds? (?:the |this )?(?:model's )?maximum context",
        "This request exceeds the model's maximum context length",
    ),
    OverflowSign("shared", r"over the maximum context", "Request is over the maximum context of this endpoint"),
    OverflowSign(
        "shared", r"max_tokens would exceed context", "LLM request rejected: max_tokens would exceed context window"
    ),
    OverflowSign("shared", r"exceeds? (?:the )?(?:model )?context window", "The prompt exceeds model context window"),
    OverflowSign(
        "shared", r"exceeds? (?:the )?context limit", "AWS Bedrock Error: the request has exceed context limit."
    ),
    OverflowSign(
        "shared", r"input length would exceed context", "input length would exceed context budget for this model"
    ),
    OverflowSign(
        "shared", r"context length is only <limit> tokens", "the model's context length is only 2048 tokens", 2_048
    ),
    OverflowSign(
        "shared",
        r"reduce the length of (?:the|your) (?:messages|prompt|input)",
        "Please reduce the length of the messages or completion.",
    ),
    OverflowSign(
        "shared", r"input (?:is )?too long for (?:the |this )?model", "mistral: input is too long for this model"
    ),
    OverflowSign("shared", r"deepseek…input…too long", "deepseek: the input you sent is too long"),
    OverflowSign("shared", r"prompt (?:is )?too (?:long|large)", "Compaction failed: prompt is too long"),
    OverflowSign("shared", r"\bprompt_too_long\b", "invalid_request_error: prompt_too_long"),
    OverflowSign("shared", r"context overflow:", "Context overflow: Summarization failed"),
    OverflowSign("shared", r"\bcontext_overflow\b", "upstream answered context_overflow"),
    OverflowSign(
        "shared", r"\bmodel_context_window_exceeded\b", "Unhandled stop reason: model_context_window_exceeded"
    ),
    OverflowSign("shared", r"context[_ ]length[_ ]exceeded", "context length exceeded"),
    OverflowSign("shared", r"context[_ ](?:window|limit)[_ ]exceeded", "upstream error: context_window_exceeded"),
    OverflowSign(
        "shared", r"exceeds the limit for this model", "Total of 9000 tokens exceeds the limit for this model"
    ),
    OverflowSign("shared", r"too many tokens", "Too many tokens"),
    OverflowSign("shared", r"(?<!output )(?<!completion )token limit (?:exceeded|reached)", "Token limit exceeded"),
    OverflowSign("shared", r"上下文(?:内容)?过长", "错误：上下文过长，请减少输入"),
    OverflowSign("shared", r"上下文(?:长度)?(?:已)?超(?:出|过)", "上下文长度超出模型最大限制"),
    OverflowSign("shared", r"超(?:出|过)(?:了)?(?:模型)?(?:的)?最大上下文", "超出最大上下文长度"),
    OverflowSign("shared", r"请压缩上下文", "请压缩上下文后重试"),
    OverflowSign("shared", r"输入(?:内容|文本)?(?:的)?长度超(?:出|过)", "输入长度超过限制"),
    OverflowSign("shared", r"超(?:出|过)最大长度", "提示词超过最大长度"),
    OverflowSign(
        "litellm",
        r"ContextWindowExceededError",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException",
    ),
)
