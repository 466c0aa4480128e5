"""headroom's `compress(messages, model=…, model_limit=…)` on OpenAI messages, without its optional models."""

from copy import deepcopy

from headroom import compress

from everlong.lab.peers.shapes import Fitting, Message


def _compressed(messages: list[Message], budget: int) -> list[Message]:
    return compress(messages, model="gpt-4o", model_limit=budget).messages


STRATEGIES = {"compress": Fitting(read=deepcopy, fit=_compressed, write=lambda messages, _: messages)}
