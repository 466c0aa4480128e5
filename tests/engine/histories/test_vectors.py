"""Vectors beside a conversation: found by meaning, computed off the request's way, kept and erased with the message."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from everlong import fit
from everlong.core import EventKind, Message
from everlong.engine import Call, Engine, Settings, Threads
from everlong.errors import InputError
from everlong.relevance import embedder_named
from everlong.store import MemoryThreads, open_engine, open_store
from tests.core.build import assistant, calls, result, user
from tests.relevance.vectors.models import write_static

CALL = Call(model="gpt-4o", max_tokens=200)
WINDOW = 1_800
SAID = "Our terrier swallowed a sock on Tuesday."
QUESTION = "Was there any trouble with a dog and a vet?"


def talk(turns: int = 120, at: int = 12) -> list[Message]:
    """People talk of many things; one of them says once what the question is about, in other words."""
    subjects = ("garden", "ladder", "curtain", "lantern", "pavement", "bicycle", "window", "painting")
    said = []
    for number in range(turns):
        thing = f"{subjects[number % 8]} number {number}"
        said += [user(f"Yesterday I looked at the {thing}, it needs mending soon."), assistant(f"Yes, the {thing}.")]
    said[min(2 * at, len(said) - 2)] = user(SAID)
    return said


def sent(engine: Engine, thread: str = "t") -> str:
    prepared = engine.blocking.prepare(thread, CALL)
    return "\n".join(message.text for message in prepared.request.messages)


def drain(engine: Engine) -> None:
    vectors = engine.blocking.context.vectors
    assert vectors is not None
    vectors.drain()


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_static(tmp_path / "model"))


@dataclass
class Counting:
    """An embedding function that counts: pets in one direction, everything else in the other."""

    texts: list[str] = field(default_factory=list)
    by: set[str] = field(default_factory=set)
    gate: threading.Event = field(default_factory=threading.Event)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.by.add(threading.current_thread().name)
        self.gate.wait()
        self.texts += texts
        return [[1.0, 0.1] if {"dog", "terrier"} & set(text.lower().split()) else [0.0, 1.0] for text in texts]


COUNTING = Counting()
BY_COUNTING, BY_FAILING = f"{__name__}:COUNTING", f"{__name__}:fail"


@pytest.fixture
def counting() -> Iterator[Counting]:
    COUNTING.texts.clear()
    COUNTING.by.clear()
    COUNTING.gate.set()
    yield COUNTING
    COUNTING.gate.set()


def fail(texts: Sequence[str]) -> list[list[float]]:
    raise RuntimeError(f"no key for {len(texts)}")


def engine_with(semantic: str, threads: Threads | None = None) -> Engine:
    settings = Settings(window=WINDOW, semantic=semantic, summaries="off")
    return Engine(MemoryThreads() if threads is None else threads, settings=settings)


def test_fit_finds_what_shares_no_word_with_the_question(model: str) -> None:
    messages = [{"role": message.role.value, "content": message.text} for message in (*talk(), user(QUESTION))]
    without = fit(messages, model="gpt-4o", budget=1_000)
    with_vectors = fit(messages, model="gpt-4o", budget=1_000, semantic=model)
    assert SAID not in str(without.messages)
    assert SAID in str(with_vectors.messages)
    assert with_vectors.tokens <= 1_000
    assert fit(messages, model="gpt-4o", budget=1_000, semantic=model).messages == with_vectors.messages


@pytest.mark.parametrize("kind", ["memory:", "chat.db", "sessions/"])
def test_a_compaction_finds_what_shares_no_word_with_the_question(kind: str, model: str, tmp_path: Path) -> None:
    url = kind if kind == "memory:" else str(tmp_path / kind)
    for semantic, found in (("off", False), (model, True)):
        with engine_with(semantic, open_store(url)) as engine:
            thread = f"t-{found}"
            engine.blocking.append(thread, talk())
            if found:
                drain(engine)
            engine.blocking.append(thread, QUESTION)
            assert (SAID in sent(engine, thread)) is found
            assert engine.threads.thread(thread).points == 1


def test_vectors_are_off_unless_somebody_asks_for_them() -> None:
    engine = Engine(MemoryThreads())
    assert Settings().semantic == "off"
    assert engine.blocking.context.vectors is None


def test_no_request_computes_a_vector(counting: Counting) -> None:
    engine = engine_with(BY_COUNTING)
    engine.blocking.append("t", talk(5))
    sent(engine)
    drain(engine)
    assert len(counting.texts) == 10
    engine.blocking.append("t", [*talk(), user("And the weather?")])
    drain(engine)
    before = len(counting.texts)
    assert before == 10 + 240 + 1, "each once: what is there already is not computed again"
    assert "Quoted word for word" in sent(engine)
    drain(engine)
    assert len(counting.texts) == before
    assert counting.by == {"vectors"}, "never in the thread that prepares a request"


def test_a_compaction_computes_the_vector_of_a_question_that_it_meets_first(counting: Counting) -> None:
    engine = engine_with(BY_COUNTING)
    engine.blocking.append("t", talk())
    drain(engine)
    counting.texts.clear()
    engine.threads.append("t", [user(QUESTION)])  # as the gateway does, just before it prepares
    assert SAID in sent(engine)
    assert counting.texts[:1] == [QUESTION]
    drain(engine)
    assert set(counting.texts) == {QUESTION}
    assert counting.by == {"vectors"}


def test_what_is_there_already_is_embedded_when_the_thread_is_used(counting: Counting) -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", talk(5))
    engine = engine_with(BY_COUNTING, threads)
    sent(engine)
    drain(engine)
    assert len(threads.vectors("t", BY_COUNTING)) == 10


def test_a_request_does_not_wait_for_a_model_that_hangs(counting: Counting) -> None:
    counting.gate.clear()
    engine = engine_with(BY_COUNTING)
    engine.blocking.append("t", [*talk(), user(QUESTION)])
    assert QUESTION in sent(engine)
    assert engine.threads.thread("t").points == 1
    counting.gate.set()
    drain(engine)
    assert len(engine.threads.vectors("t", BY_COUNTING)) == 241


def test_where_tools_work_nothing_is_embedded(counting: Counting) -> None:
    engine = engine_with(BY_COUNTING)
    engine.blocking.append("t", [user("Read it"), calls("1"), result("1", "x = 1"), assistant("It says x.")])
    drain(engine)
    assert counting.texts == []


def test_vectors_are_erased_with_the_message_and_stay_away(model: str, tmp_path: Path) -> None:
    with engine_with(model, open_store(str(tmp_path / "chat.db"))) as engine:
        name = embedder_named(model).name  # type: ignore[union-attr]
        engine.blocking.append("t", talk(5, at=2))
        drain(engine)
        assert sorted(engine.threads.vectors("t", name)) == list(range(10))
        engine.blocking.erase_messages("t", [4])
        engine.blocking.append("t", "Something else")
        drain(engine)
        assert 4 not in engine.threads.vectors("t", name)


def test_the_next_process_goes_on_with_what_was_kept(counting: Counting, tmp_path: Path) -> None:
    url = str(tmp_path / "chat.db")
    with engine_with(BY_COUNTING, open_store(url)) as engine:
        engine.blocking.append("t", talk(5))
        drain(engine)
    counting.texts.clear()
    with engine_with(BY_COUNTING, open_store(url)) as engine:
        engine.blocking.append("t", "One more")
        drain(engine)
        assert counting.texts == ["One more"]


def test_a_function_that_fails_is_told_and_costs_nothing_else() -> None:
    engine = engine_with(BY_FAILING)
    engine.blocking.append("t", talk(2))
    drain(engine)
    assert "garden" in sent(engine)
    warned = [event.reason for event in engine.threads.events("t") if event.kind is EventKind.CONTEXT_WARNED]
    assert [reason for reason in warned if "fail failed: RuntimeError: no key" in reason]
    assert engine.threads.vectors("t", BY_FAILING) == {}


def test_a_wrong_setting_is_told_when_the_engine_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="semantic: there is no folder"):
        open_engine("memory:", settings=Settings(semantic=str(tmp_path / "none")))


def test_a_thread_cannot_name_code_or_files(counting: Counting) -> None:
    engine = engine_with("off", MemoryThreads())
    engine.threads.create("t")
    engine.threads.change("t", settings='{"semantic": "os:system", "recall_share": 0.5}')
    settings = engine.blocking.context.settings_of("t")
    assert (settings.semantic, settings.recall_share) == ("off", 0.5)


def test_an_engine_may_be_closed_while_vectors_are_made(counting: Counting) -> None:
    engine = engine_with(BY_COUNTING)
    engine.blocking.append("t", talk())
    asyncio.run(engine.__aexit__(None, None, None))
    assert not engine.blocking.context.vectors._worker.is_alive()  # type: ignore[union-attr]
