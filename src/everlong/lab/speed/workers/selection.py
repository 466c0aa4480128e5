"""What choosing costs at a cut, and what the index costs that it chooses from; in a process of its own."""

from dataclasses import replace
from typing import cast

from everlong.compress import Task, by_need, draft_of
from everlong.core import History, Json, Message, Role, Text
from everlong.lab.speed.workers.job import Job, cpu, serve, transcript
from everlong.relevance import Index
from everlong.tokens import Counter
from everlong.wire import parse_body
from everlong.wire.openai_chat import FORMAT

MODEL = "gpt-4o"
PARTS = 10  # the first and the last of them are compared


def work(job: Job) -> Job:
    """CPU seconds of each selection, once what left is indexed, and of indexing each part of the conversation."""
    history = parse_body(cast(Json, transcript(job["transcript"]))).messages
    counter = Counter(MODEL)
    _select(history[: len(history) // PARTS], counter, Index(), 0)  # the vocabulary and the rules are loaded
    counter.messages(history)
    index = Index()
    _select(history, counter, index, 0)
    selections = [_select(history, counter, index, number) for number in range(1, job["repeats"] + 1)]
    return {"selections": selections, "messages": len(history), **_indexing(history, counter)}


def _select(history: History, counter: Counter, index: Index, number: int) -> float:
    """The question is another one each time, so that nothing chosen before is of use."""
    words = history[number % len(history)].text.split()[:12]
    question = Message(Role.USER, (Text(f"Question {number}: what was it about {' '.join(words)}?"),))
    asked = (*history, question)
    task = Task(target=1, counter=counter, window=1, fmt=FORMAT, model=MODEL)
    draft = draft_of(asked, task)
    task = replace(task, target=draft.total // 2, window=draft.total // 2)
    return cpu(lambda: by_need(draft, task, index=index))[0]


def _indexing(history: History, counter: Counter) -> Job:
    """Seconds and tokens of each part, one after the other into one index."""
    index = Index()
    size = max(1, len(history) // PARTS)
    pieces = [history[start : start + size] for start in range(0, size * PARTS, size)]
    seconds = [cpu(index.extend, piece)[0] for piece in pieces]
    return {"indexing": seconds, "indexed_tokens": [counter.messages(piece) for piece in pieces]}


if __name__ == "__main__":
    serve(work)
