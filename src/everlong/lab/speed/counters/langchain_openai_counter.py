"""langchain's exact counter: `ChatOpenAI(model="gpt-4o").get_num_tokens_from_messages`, which asks tiktoken."""

from collections.abc import Callable

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_openai import ChatOpenAI

from everlong.lab.peers.shapes import Counting

MODEL = ChatOpenAI(model="gpt-4o")


def _grown(messages: list[BaseMessage]) -> Callable[[list[BaseMessage]], int]:
    return lambda more: MODEL.get_num_tokens_from_messages([*messages, *more])


COUNTERS = {"exact": Counting(read=convert_to_messages, count=MODEL.get_num_tokens_from_messages, grow=_grown)}
