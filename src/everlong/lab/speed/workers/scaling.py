"""What everlong's `fit` costs as a conversation grows, each question in a process of its own."""

import tracemalloc
from collections.abc import Callable

import everlong
from everlong.engine import Fitted
from everlong.lab.peers.rules import texts
from everlong.lab.peers.shapes import Message
from everlong.lab.speed.transcripts import TOOLS
from everlong.lab.speed.workers.job import Job, cpu, serve, transcript

MODEL = "gpt-4o"


def work(job: Job) -> Job:
    """One figure: CPU seconds, or bytes."""
    messages = transcript(job["transcript"])
    if job["question"] not in COLD:
        _warm_up()
    return {"figure": QUESTIONS[job["question"]](messages, job["tokens"])}


def _fit(messages: list[Message], budget: int, previous: Fitted | None = None) -> Fitted:
    result = everlong.fit(messages, model=MODEL, budget=budget, tools=TOOLS, previous=previous)
    result.messages  # noqa: B018 - they are written out when they are first asked for
    return result


def _warm_up() -> None:
    small = [{"role": "user", "content": f"number {index} of many small words"} for index in range(40)]
    _fit(small, 400)


def _counting(messages: list[Message], _: int) -> float:
    return cpu(lambda: everlong.count(messages, model=MODEL, tools=TOOLS))[0]


def _fitting(messages: list[Message], tokens: int) -> float:
    return cpu(_fit, messages, tokens // 2)[0]


def _nothing_to_cut(messages: list[Message], tokens: int) -> float:
    """One more message, all of it fits."""
    before = _fit(messages[:-1], tokens * 2)
    return cpu(_fit, messages, tokens * 2, before)[0]


def _next_cut(messages: list[Message], tokens: int) -> float:
    """One more turn, which makes a new cut due; what came before was cut and indexed already."""
    asked = [at for at, message in enumerate(messages) if message["role"] == "user"]
    before = _fit(messages[: asked[-2]], tokens // 2)
    return cpu(_fit, messages, tokens // 2, before)[0]


def _peak(messages: list[Message], tokens: int) -> float:
    """The most memory in use during a first fit, as a multiple of the text; Python's own, not the vocabulary."""
    size = sum(len(text.encode()) for message in messages for text in texts(message))
    tracemalloc.start()
    _fit(messages, tokens // 2)
    return tracemalloc.get_traced_memory()[1] / size


#: Asked of a process that has not even loaded the vocabulary.
COLD = frozenset({"count, cold", "fit, cold"})

QUESTIONS: dict[str, Callable[[list[Message], int], float]] = {
    "count, cold": _counting,
    "fit, cold": _fitting,
    "count": _counting,
    "fit": _fitting,
    "nothing to cut": _nothing_to_cut,
    "next cut": _next_cut,
    "memory": _peak,
}


if __name__ == "__main__":
    serve(work)
