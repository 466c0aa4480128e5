"""Which conversation a request goes on with, and what of it is still true: edits, branches, restarts, parallel ones."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from everlong.core import Message, Point, message_ref
from everlong.engine import Call, Engine, Settings, Threads
from everlong.gateway.config import Keep
from everlong.gateway.conversations.conversation import Conversation
from everlong.gateway.conversations.conversations import Conversations
from everlong.gateway.conversations.memory_threads import MemoryFirstThreads
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.exchange.body import forwarded_body
from everlong.gateway.request import parse_request
from everlong.gateway.surfaces import SURFACES, Address
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window
from everlong.store import MemoryThreads
from everlong.wire import format_named, problems
from tests.gateway.resending import FORMATS, Resending, of_clients
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
WINDOW = 3_000
FILLING = " ".join(f"plain{number}" for number in range(60))
PLANTED = re.compile(r"planted\d+x")


def planted(text: str | bytes) -> set[str]:
    """The words that tell messages apart."""
    return set(PLANTED.findall(text if isinstance(text, str) else text.decode()))


def said(number: int, at: int) -> Value:
    """A message with a word that no other has."""
    return {"role": "user" if at % 2 == 0 else "assistant", "content": f"planted{number}x {FILLING} planted{number}x"}


class Desk:
    """Conversations with an engine behind them and no HTTP around; `request` gives the body that is forwarded."""

    def __init__(self, store: Threads, fmt: str = "openai-chat", *, room: int = 1 << 30, keep: Keep = "edits") -> None:
        self.kept = StateStore(store, keep=keep)
        self.threads = MemoryFirstThreads(self.kept, lambda: 0.0)
        engine = Engine(self.threads, settings=Settings(summaries="off"))
        self.engine = engine.blocking
        self.began = 0
        self.conversations = Conversations(engine, self.kept, room=room, began=self._count)
        self.fmt = fmt

    def _count(self) -> None:
        self.began += 1

    def request(self, messages: list[Value], *, scope: str = "one", system: str = "", name: str = "") -> bytes:
        """What is sent to the upstream for these messages."""
        return self.placed(messages, scope=scope, system=system, name=name)[1]

    def placed(
        self, messages: list[Value], *, scope: str = "one", system: str | list[Value] = "", name: str = ""
    ) -> tuple[Conversation, bytes]:
        spoken = format_named(self.fmt)
        body: Value = {"model": "gpt-4o", "max_tokens": 300, spoken.api.messages: messages}
        if system:
            body |= {spoken.api.system: system} if spoken.api.system else {}
        surface = next(each for each in SURFACES if each.format is spoken)
        request = parse_request(Address(surface=surface), json.dumps(body).encode())
        transcript = self.conversations.transcript(request, scope, name=name)
        conversation = self.conversations.enter(scope, transcript)
        call = Call(model="gpt-4o", fmt=self.fmt, served=WINDOW, max_tokens=300)
        prepared = self.engine.prepare(conversation.thread, call)
        sent = forwarded_body(request, transcript, conversation, prepared)
        self.engine.record_usage(prepared, None)
        self.conversations.leave(conversation)
        self.conversations.keep_marks(conversation)
        self.kept.flush()
        return conversation, sent


@pytest.fixture
def desk() -> Desk:
    return Desk(MemoryThreads())


def talk(length: int) -> list[Value]:
    return [said(at, at) for at in range(length)]


def grown(desk: Desk, length: int) -> tuple[Conversation, list[Value]]:
    """A conversation that grew turn by turn until it was cut."""
    messages = talk(length)
    for end in range(1, length + 1, 2):
        conversation, _ = desk.placed(messages[:end])
    return conversation, messages


def point_of(desk: Desk, conversation: Conversation) -> Point:
    row = desk.threads.open(conversation.thread).point
    assert row is not None
    assert isinstance(row.entry, Point)
    return row.entry


def test_what_goes_on_stays_in_its_conversation(desk: Desk) -> None:
    first, messages = grown(desk, 9)
    second, _ = desk.placed([*messages, said(100, 1), said(101, 2)])
    assert first is second
    assert desk.began == 1
    assert len(desk.conversations) == 1


def test_an_edit_before_the_boundary_takes_nothing_of_the_cut(desk: Desk) -> None:
    conversation, messages = grown(desk, 41)
    boundary = point_of(desk, conversation).boundary
    assert boundary > 4
    edited = [*messages[:2], said(500, 2), *messages[3:], said(501, 1), said(502, 2)]
    other, sent = desk.placed(edited)
    assert other is not conversation
    assert planted(json.dumps(messages[2])).isdisjoint(planted(sent))
    fresh = Desk(MemoryThreads()).request(edited)
    assert sent == fresh, "as if the old one had never been"


def test_an_edit_after_the_boundary_reuses_the_cut(desk: Desk) -> None:
    conversation, messages = grown(desk, 23)
    point = point_of(desk, conversation)
    assert point.boundary < len(messages)
    edited = [*messages[: point.boundary], said(500, point.boundary)]
    other, sent = desk.placed(edited)
    assert other is not conversation
    assert point_of(desk, other).summary == point.summary
    assert b"planted500x" in sent
    assert desk.began == 1, "a branch is no new conversation"


@pytest.mark.parametrize("keep", ["edits", "nothing"])
def test_a_cut_is_found_again_in_the_store_or_not_at_all(keep: Keep) -> None:
    store = MemoryThreads()
    conversation, messages = grown(Desk(store, keep=keep), 41)
    again = Desk(store, keep=keep)
    other, _ = again.placed([*messages, said(100, 1), said(101, 2)])
    known = [row.order for row in again.threads.read(other.thread) if isinstance(row.entry, Point)]
    assert conversation.thread != other.thread
    assert (known[0] < 41) == (keep == "edits")


def test_another_scope_is_another_conversation(desk: Desk) -> None:
    _, messages = grown(desk, 41)
    assert desk.request(messages, scope="two") == Desk(MemoryThreads()).request(messages)
    assert desk.began == 2


def test_a_name_keeps_conversations_apart_that_say_the_same(desk: Desk) -> None:
    one, _ = desk.placed(talk(3), name="one")
    two, _ = desk.placed(talk(3), name="two")
    again, _ = desk.placed(talk(5), name="one")
    assert one is again
    assert one is not two


def test_conversations_make_room_and_nothing_else_changes() -> None:
    tight, wide = Desk(MemoryThreads(), room=1), Desk(MemoryThreads())
    messages = talk(61)
    for end in range(1, 62, 2):
        assert tight.request(messages[:end]) == wide.request(messages[:end])
        tight.request([said(1000 + end, 0)])
        assert len(tight.conversations) <= 1


def test_what_is_under_way_is_not_given_up() -> None:
    desk = Desk(MemoryThreads(), room=1)
    conversation, _ = desk.placed(talk(1))
    call = Call(model="gpt-4o", served=WINDOW)
    prepared = desk.engine.prepare(conversation.thread, call)
    desk.request([said(7, 0)])
    assert conversation in desk.conversations.all()
    desk.engine.record_usage(prepared, None)
    desk.request([said(8, 0)])
    assert conversation not in desk.conversations.all()


def test_system_text_that_changes_is_sent_as_it_is_now() -> None:
    desk = Desk(MemoryThreads(), "anthropic")
    first, one = desk.placed(talk(3), system="It is noon.")
    second, two = desk.placed(talk(5), system="It is one.")
    assert first is second
    assert b"It is noon." in one
    assert b"It is noon." not in two
    assert b"It is one." in two


def test_a_last_message_that_is_rewritten_again_and_again_takes_its_own_room_only() -> None:
    desk, before = Desk(MemoryThreads()), [said(number, number) for number in range(4)]
    for words in (10, 400, 200, 300):
        last = {"role": "user", "content": "word " * words}
        rewritten, _ = desk.placed([*before, last])
        fresh, _ = Desk(MemoryThreads()).placed([*before, last])
        assert rewritten.size == fresh.size
    assert desk.began == 1


def test_system_text_takes_room_too() -> None:
    desk = Desk(MemoryThreads(), "anthropic", room=40_000)
    for number in range(12):
        desk.request([said(number, 0)], system=f"Number {number}. " + "Be kind. " * 450)
    assert len(desk.conversations) <= 3


def test_system_text_that_grows_takes_more_room() -> None:
    desk = Desk(MemoryThreads(), "anthropic", room=40_000)
    for number in range(12):
        desk.request([said(number, 0)])
        desk.request([said(number, 0)], system=f"Number {number}. " + "Be kind. " * 450)
    assert len(desk.conversations) <= 3


class Interrupting(MemoryThreads):
    """A store in which something else happens once, while the newest mark is looked for."""

    meanwhile: Callable[[], object] | None = None

    def fact(self, kind: str, key: str) -> str | None:
        happens, self.meanwhile = (self.meanwhile, None) if kind == "gateway/newest" else (None, self.meanwhile)
        if happens is not None:
            happens()
        return super().fact(kind, key)


def test_a_conversation_given_up_while_another_looks_at_it_costs_nobody_an_answer() -> None:
    store = Interrupting()
    desk = Desk(store, room=1)
    desk.request(talk(3))
    store.meanwhile = lambda: desk.request([said(7, 0)])
    sent = desk.request([*talk(2), said(500, 2)])
    assert store.meanwhile is None
    assert b"planted500x" in sent


# --- any edits -------------------------------------------------------------------------------------

#: What a client may do next: go on, say something else somewhere, take back, and what may happen to the gateway.
STEPS = st.lists(
    st.tuples(st.sampled_from(["on", "on", "on", "edit", "back", "restart"]), st.integers(0, 60)), max_size=14
)


@pytest.mark.parametrize("fmt", FORMATS)
@settings(max_examples=25, deadline=None)
@given(steps=STEPS, start=st.integers(0, 30))
@example(steps=[("back", 16)], start=8)  # back to exactly what a compaction covers: the last question is still sent
def test_J2_law5_what_is_forwarded_is_the_clients_own_and_all_of_it_is_accounted_for(
    fmt: str, steps: list[tuple[str, int]], start: int
) -> None:
    store = MemoryThreads()
    desk, messages, number = Desk(store, fmt), talk(2 * start + 1), 1_000
    for what, place in [("on", 0), *steps]:
        number += 1
        match what:
            case "edit":
                at = place % len(messages)
                messages = [*messages[:at], said(number, at), *messages[at + 1 :]]
            case "back":
                messages = messages[: 2 * (place % len(messages) // 2) + 1]
            case "restart":
                desk = Desk(store, fmt)
            case _:
                messages = [*messages, said(number, 1), said(number + 5_000, 2)]
        conversation, sent = desk.placed(messages)
        assert problems(fmt, json.loads(sent)) == []
        assert planted(sent) <= planted(json.dumps(messages)), "words of another history"
        assert planted(json.dumps(messages[-1])) <= planted(sent)
        _accounted_for(desk, conversation, messages, sent)


def _accounted_for(desk: Desk, conversation: Conversation, messages: list[Value], sent: bytes) -> None:
    """Law 5: each message is sent as it is, or lies behind the newest point with its original at hand."""
    rows = [row for row in desk.threads.read(conversation.thread) if isinstance(row.entry, Message)]
    assert [planted(row.entry.text) for row in rows if isinstance(row.entry, Message)] == [
        planted(json.dumps(message)) for message in messages
    ]
    found = desk.threads.open(conversation.thread).point
    boundary = found.entry.boundary if found is not None and isinstance(found.entry, Point) else 0
    for row in rows:
        assert isinstance(row.entry, Message)
        if row.order >= boundary:
            assert row.entry.text in sent.decode()
        else:
            assert desk.threads.original(conversation.thread, message_ref(row.entry)) is not None


# --- at the same time ------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", FORMATS)
def test_J2_parallel_requests_of_one_conversation_never_see_each_other(fmt: str) -> None:
    """Beginnings of different lengths and different ends, all at once: each is answered by what it said itself."""

    def script(asked: ReceivedRequest) -> Step:
        return Answer(text=" ".join(sorted({word for m in asked.messages for word in planted(m.text)})), before=0.01)

    messages = talk(31)

    def ask(gateway: RunningGateway, number: int) -> tuple[set[str], set[str]]:
        client = Resending(fmt, system="")
        client.messages = [*messages[: 2 * (number % 12) + 1], said(1, 1), said(2_000 + number // 3, 2)]
        answer = client.send(gateway)
        return planted(json.dumps(answer)), planted(json.dumps(client.messages))

    with (
        ScriptedServer(script, window=Window(WINDOW, told=True)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
        ThreadPoolExecutor(8) as pool,
    ):
        for heard, own in pool.map(lambda number: ask(gateway, number), range(60)):
            assert heard <= own
        assert len(of_clients(server)) == 60
