"""tiktoken, called directly on every text, with its rank files already on the machine."""

import tiktoken

from everlong.lab.peers.shapes import Counting, Message


def _texts(messages: list[Message]) -> list[str]:
    texts = []
    for message in messages:
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        texts += [message.get("content"), message.get("reasoning_content")]
        texts += [text for call in calls for text in (call["name"], call["arguments"])]
    return [text for text in texts if text]


def _count(pieces: list[str]) -> int:
    encoding = tiktoken.encoding_for_model("gpt-4o")
    return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)


COUNTERS = {"encode_ordinary": Counting(read=_texts, count=_count, grow=lambda _: _count)}
