"""OpenAI messages to langchain's and back, for the peers that use them."""

import json

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages, convert_to_openai_messages

from everlong.lab.peers.rules import CALL_FRAME, MESSAGE_FRAME, text_tokens
from everlong.lab.peers.shapes import Message

__all__ = ["exact", "read", "write"]


def read(messages: list[Message]) -> list[BaseMessage]:
    """Convert as langchain does. The ids identify the messages later."""
    converted = convert_to_messages(messages)
    for index, message in enumerate(converted):
        message.id = str(index)
    return converted


def write(messages: list[BaseMessage], original: list[Message]) -> list[Message]:
    """Return the original messages with their current content; added messages as langchain converts them."""
    return [_written(message, original) for message in messages]


def _written(message: BaseMessage, original: list[Message]) -> Message:
    if message.id is None or not message.id.isdecimal():
        added: Message = convert_to_openai_messages(message)
        return added
    before = original[int(message.id)]
    return before if message.content == (before.get("content") or "") else {**before, "content": message.content}


def exact(messages: list[BaseMessage]) -> int:
    """Count as a careful user's counter would: with the true vocabulary, and each text once."""
    return sum(map(_tokens, messages))


def _tokens(message: BaseMessage) -> int:
    tokens = (
        MESSAGE_FRAME + text_tokens(message.text) + text_tokens(message.additional_kwargs.get("reasoning_content", ""))
    )
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        tokens += CALL_FRAME + text_tokens(call["name"]) + text_tokens(json.dumps(call["args"]))
    return tokens
