"""Wordings of refusals for a history of the wrong shape, or for images.

The rows are as in `signs`. The size of the request does not matter: a smaller one with the same fault is refused again,
a repaired one is accepted.
"""

from everlong.wire.refusals.signs import Kind, RefusalSign

__all__ = ["SHAPE_SIGNS"]


def _malformed(provider: str, pattern: str, sample: str) -> RefusalSign:
    return RefusalSign(Kind.MALFORMED_HISTORY, provider, pattern, sample)


def _media(provider: str, pattern: str, sample: str) -> RefusalSign:
    return RefusalSign(Kind.MEDIA, provider, pattern, sample)


#: The provider does not accept the history or its images; the size does not matter.
SHAPE_SIGNS: tuple[RefusalSign, ...] = (
    _malformed(
        "anthropic",
        r"tool_use. ids were found without .tool_result. blocks",
        "messages.125: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_0149kv38. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    _malformed(
        "anthropic",
        r"unexpected .tool_use_id. found in",
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01FfCGdd. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    ),
    _malformed(
        "anthropic",
        r"tool_use. must have a single result|found multiple .tool_result. blocks",
        "messages.20.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        "toolu_01A",
    ),
    _malformed("anthropic", r"tool_use. ids must be unique", "messages.3.content.2: `tool_use` ids must be unique"),
    _malformed(
        "anthropic",
        r"tool_use(?:_id|\.id)?: string should match pattern",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    _malformed(
        "anthropic",
        r"did not find \d+ .?tool_result.? block",
        "messages.48: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages following "
        "`tool_use` blocks must begin with a matching number of `tool_result` blocks.",
    ),
    _malformed(
        "anthropic",
        r"redacted_thinking. blocks in the latest assistant message cannot be modified",
        "messages.1.content.6: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
    ),
    _malformed(
        "anthropic",
        r"invalid .?signature.? in .?thinking.? block",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    _malformed(
        "anthropic",
        r"expected .?thinking.? or .?redacted_thinking",
        "messages.129.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block",
    ),
    _malformed(
        "anthropic",
        r"text content blocks must (?:be non-empty|contain non-whitespace)",
        "messages: text content blocks must be non-empty",
    ),
    _malformed(
        "anthropic",
        r"messages must have non-empty content",
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    _malformed("anthropic", r"at least one message is required", "messages: at least one message is required"),
    _malformed(
        "anthropic",
        r"no low surrogate in string|lone (?:leading|trailing) surrogate|invalid (?:high|low) surrogate",
        "The request body is not valid JSON: no low surrogate in string: line 1 column 244713 (char 244712)",
    ),
    _malformed(
        "openai",
        r"must be followed by tool messages responding to each .tool_call_id",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The "
        "following tool_call_ids did not have response messages: call_abc123",
    ),
    _malformed(
        "openai",
        r"messages with role .tool. must be a response to a prece",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    ),
    _malformed(
        "openai",
        r"(?:\.id|call_id)': string too long",
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a "
        "string with length 60 instead.",
    ),
    _malformed(
        "openai-responses",
        r"no tool call found for function call output",
        "No tool call found for function call output with call_id call_xK2.",
    ),
    _malformed(
        "openai-responses",
        r"no tool output found for function call",
        "No tool output found for function call call_9Zq.",
    ),
    _malformed(
        "openai-responses",
        r"of type .\w+. was provided without its required",
        "Item 'rs_0c3876fc' of type 'reasoning' was provided without its required following item.",
    ),
    _malformed(
        "openai-responses",
        r"encrypted content…could not be (?:verified|decrypted)|invalid_encrypted_content",
        "The encrypted content gAAA... could not be verified.",
    ),
    _malformed(
        "gemini",
        r"number of function response parts…equal to the number of function call parts",
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn.",
    ),
    _malformed(
        "gemini",
        r"function call turn comes immediately after",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    ),
    _malformed(
        "gemini",
        r"missing a thought_signature|invalid thought signature|thought signature is not valid",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly",
    ),
    _malformed(
        "gemini",
        r"contents(?:\[\d+\])?…must (?:not be empty|include at least one parts field)|contents? (?:is|are) not "
        r"specified",
        "* GenerateContentRequest.contents: contents is not specified",
    ),
    _malformed(
        "bedrock",
        r"toolresult blocks at…exceeds the number of tooluse blocks|expected toolresult blocks at",
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
    ),
    _malformed(
        "bedrock",
        r"content field (?:at|in)…(?:cannot be|is) (?:empty|blank)|text field…is blank",
        "The content field at messages.4.content.0.toolResult cannot be empty when status value is error.",
    ),
    _malformed(
        "bedrock",
        r"conversation must start with a user message",
        "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
    ),
    _malformed(
        "bedrock",
        r"blocks cannot be provided in the same turn",
        "messages.4.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
    ),
    _malformed(
        "mistral",
        r"unexpected role .\w+. after role|expected last role",
        "Unexpected role 'user' after role 'tool'",
    ),
    _malformed(
        "mistral",
        r"not the same number of function calls and responses",
        "Not the same number of function calls and responses",
    ),
    _malformed(
        "deepseek",
        r"reasoning_content.{0,40}must be passed back|missing .?reasoning_content|reasoning_content is missing",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ),
    _malformed(
        "minimax",
        r"tool result's tool id…not found|tool call result does not follow tool call",
        "invalid params, tool result's tool id(call_function_g094w5htkglv_1) not found (2013)",
    ),
    _malformed(
        "minimax",
        r"(?:invalid|failed to parse) (?:function|tool call) arguments (?:as )?json",
        "invalid params, invalid function arguments json string, tool_call_id: call_function_abraty2ssz2_1 (2013)",
    ),
    _malformed("kimi", r"text content is empty", "Invalid request: text content is empty"),
    _malformed(
        "shared",
        r"roles must alternate",
        "After the optional system message, conversation roles must alternate user and assistant roles",
    ),
    _malformed("shared", r"no user query found in messages", "no user query found in messages"),
    _media(
        "anthropic",
        r"image dimensions exceeds? max allowed size",
        "messages.108.content.3.image.source.base64.data: At least one of the image dimensions exceed max allowed size "
        "for many-image requests: 2000 pixels",
    ),
    _media(
        "anthropic",
        r"image exceeds \S{1,8} ?.B maximum",
        "messages.4.content.1.image.source.base64: image exceeds 5 MB maximum: 6815744 bytes > 5242880 bytes",
    ),
    _media("anthropic", r"too many images and documents", "messages: too many images and documents: 101 + 0 > 100"),
    _media("openai", r"too many images in (?:the )?request", "Too many images in request. Max is 500."),
    _media("mistral", r"number of images…exceed|up to \d+ images", "This model supports up to 8 images per request"),
    _media("groq", r"image.{0,20}too large|image_too_large", "image too large: the maximum size is 4MB"),
    _media(
        "vllm", r"at most \d+ images?(?:\(s\))? may be provided", "At most 1 image(s) may be provided in one prompt."
    ),
    _media(
        "shared", r"could not process image|invalid image data", "messages.6.content.0.image: Could not process image"
    ),
)
