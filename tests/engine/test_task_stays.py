"""The task stands in every request, however long the conversation: whole, or in its place with what is needed of it."""

import pytest

from everlong.core import Message
from everlong.engine import Call, Settings
from everlong.engine.raw_history import HORIZON, Horizon
from everlong.engine.recall.request import recall
from everlong.engine.requests.preparation import prepare
from everlong.engine.thread import EngineContext
from everlong.engine.usage import record_failure
from everlong.store import open_store
from tests.core.build import assistant, calls, result, system, user

TASK = "Mend the accounts of the harbour: every berth is to be let once, and only once."
RULES = "\n".join(f"Rule {n}: the ledger of quay {n} is written in ink of colour {n}." for n in range(120))
LONG_TASK = f"{TASK}\n{RULES}\nSay so when it is done."
WORDS = "The boats lie at the pier and wait for the tide. " * 15
WINDOW = 6_000


def tools(turn: int) -> list[Message]:
    return [calls(f"c{turn}", arguments=f'{{"path": "quay{turn}.txt"}}'), result(f"c{turn}", f"quay {turn}: {WORDS}")]


def texts(turn: int) -> list[Message]:
    return [
        assistant(f"Thought: quay {turn}\nAction: read quay{turn}.txt"),
        user(f"Observation:\nquay {turn}: {WORDS}"),
    ]


def nudges(turn: int) -> list[Message]:
    return [assistant(f"Quay {turn} is done. {WORDS}"), user("continue")]


def questions(turn: int) -> list[Message]:
    return [assistant(f"Quay {turn} is done. {WORDS}"), user(f"And what of boat {turn}? {WORDS}")]


@pytest.mark.parametrize("horizon", [HORIZON, Horizon(9_000, 4)], ids=["all is read", "a near horizon"])
@pytest.mark.parametrize("work", [tools, texts, nudges, questions])
@pytest.mark.parametrize("task", [TASK, LONG_TASK], ids=["short", "long"])
def test_through_forty_steps(task: str, work: object, horizon: Horizon) -> None:
    with open_store("memory:") as store:
        settings = Settings(summaries="off", window=WINDOW)
        engine = EngineContext(threads=store, settings=settings, horizon=horizon)
        store.create("t")
        store.append("t", [system("You keep books."), user(task)])
        for turn in range(40):
            prepared = prepare(engine, "t", Call(model="gpt-4o", max_tokens=400))
            sent = [message for message in prepared.request.messages if message.text.startswith(TASK)]
            assert len(sent) == 1, f"turn {turn}"
            assert prepared.tokens <= WINDOW
            if sent[0].text != task:
                assert task is LONG_TASK
                assert sent[0].text.endswith("Say so when it is done.")
                ref = next(edit.ref for edit in prepared.edits if edit.at == 1)
                assert recall(store, "t", str(ref)).original == task.encode()
            record_failure(engine, prepared, "not sent")
            store.append("t", work(turn))  # type: ignore[operator]
        assert prepared.compactions >= 2
