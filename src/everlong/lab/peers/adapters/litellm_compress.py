"""litellm's `compress(messages, model, compression_trigger=…)`: BM25 for the last user message, stubs for the rest.

`compression_target` stays at its default, 70 % of the trigger: it counts the words that are kept, not the stubs. The
tool that restores stubs needs a stub's key, which only a model can choose, so it is not called here. A message whose
content is null, as in OpenAI's calls, makes it fail, so such a message gets an empty text.
"""

from litellm import compress

from everlong.lab.peers.shapes import Fitting, Message


def _read(messages: list[Message]) -> list[Message]:
    return [message | {"content": message.get("content") or ""} for message in messages]


def _compressed(messages: list[Message], budget: int) -> list[Message]:
    return compress(messages, model="gpt-4o", compression_trigger=budget)["messages"]


STRATEGIES = {"bm25": Fitting(read=_read, fit=_compressed, write=lambda messages, _: messages)}
