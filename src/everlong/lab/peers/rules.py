"""The same rules for everyone: how many tokens, and whether a provider would accept the messages.

A message counts the o200k tokens of all text that the model reads plus 4 for its frame; a speaker's name adds its
tokens plus 1; a call adds its name, its arguments and 8. These are the figures of everlong's own counter for gpt-4o (a
test compares them), but implemented separately, so that a fault there shows here. Needs only splintr.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from splintr import Tokenizer

__all__ = ["Message", "intact", "legible", "message_tokens", "problems", "raw_tokens", "text_tokens", "texts", "total"]

Message = dict[str, Any]

MESSAGE_FRAME = 4
CALL_FRAME = 8
SLICE = 32  # characters: too long to match by chance


@cache
def _vocabulary() -> Any:
    return Tokenizer.from_pretrained("o200k_base")


def raw_tokens(text: str) -> int:
    """Return the tokens of a text, without a cache."""
    return len(_vocabulary().encode_ordinary(text.encode("utf-8", "replace").decode()))


#: The exact counter for peers, with a cache, as a careful user's would have.
text_tokens = lru_cache(maxsize=200_000)(raw_tokens)


def texts(message: Message) -> list[str]:
    """Return everything in a message that the model reads."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else []
    for part in content if isinstance(content, list) else ():
        words = part.get("text") if isinstance(part, dict) else part
        parts.append(words if isinstance(words, str) else json.dumps(part, ensure_ascii=False))
    for call in message.get("tool_calls") or ():
        parts += [call["function"]["name"], call["function"]["arguments"]]
    if message.get("reasoning_content"):
        parts.append(message["reasoning_content"])
    return parts


def message_tokens(message: Message) -> int:
    """Return the tokens of a message with its frame. Example: {"role": "user", "content": "hello world"} -> 6"""
    frames = MESSAGE_FRAME + CALL_FRAME * len(message.get("tool_calls") or ())
    speaks = bool(message.get("name")) and message["role"] != "tool"  # a tool's name is in its call
    speaker = 1 + text_tokens(message["name"]) if speaks else 0
    return frames + speaker + sum(map(text_tokens, texts(message)))


def total(messages: Sequence[Message]) -> int:
    """Return the tokens of a list of messages."""
    return sum(map(message_tokens, messages))


def intact(messages: Sequence[Message], original: Sequence[Message]) -> float:
    """Return the share of tool results that were kept word for word."""
    contents = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    results = [message for message in original if message["role"] == "tool"]
    whole = sum(contents.get(result["tool_call_id"]) == result["content"] for result in results)
    return whole / len(results) if results else 1.0


def legible(messages: Sequence[Message], original: Sequence[Message]) -> float:
    """Return the share of the text of tool results that can still be read anywhere; short lines do not count."""
    seen = {piece for message in messages for text in texts(message) for piece in _slices(text, 1)}
    results = [message["content"] for message in original if message["role"] == "tool"]
    wanted = [piece for text in results for piece in _slices(text, SLICE)]
    return sum(piece in seen for piece in wanted) / len(wanted) if wanted else 1.0


def _slices(text: str, every: int) -> Iterator[str]:
    """Yield pieces of lines, taken from their ends, so that single lines and lines without numbers are found again."""
    for line in text.splitlines():
        words = " ".join(line.split())
        for end in range(len(words), SLICE - 1, -every):
            yield words[end - SLICE : end]


def problems(messages: Sequence[Message], original: Sequence[Message]) -> list[str]:
    """Return what an OpenAI-style provider would reject or the user would miss; [] means valid."""
    if not messages:
        return ["empty"]
    faults = []
    if original[0]["role"] == "system" and not _opens_with(messages[0], original[0]["content"]):
        faults.append("system prompt lost or changed")
    first = next((message["role"] for message in messages if message["role"] != "system"), None)
    if first != "user":
        faults.append(f"first non-system message is {first}")
    questions = [message["content"] for message in original if message["role"] == "user"]
    if questions and not any(message["role"] == "user" and message["content"] == questions[-1] for message in messages):
        faults.append("last user message lost")
    return faults + _unpaired(messages)


def _opens_with(message: Message, system: str) -> bool:
    return message["role"] == "system" and system in (message["content"] or "")


def _unpaired(messages: Sequence[Message]) -> list[str]:
    faults: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                faults.append("tool result without its call")
        else:
            faults += ["call without its result"] * len(waiting)
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return faults + ["call without its result"] * len(waiting)
