"""Two processes that add marks to one conversation at the same time: neither loses what the other added."""

import json
from dataclasses import replace
from typing import Any

from everlong.core import Entry, Point, Recalled
from everlong.engine import SUMMARY, Engine, Settings
from everlong.gateway.conversations.conversation import Conversation
from everlong.gateway.conversations.conversations import Conversations
from everlong.gateway.conversations.marks import Kind, Listed
from everlong.gateway.conversations.memory_threads import MemoryFirstThreads
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.request import parse_request
from everlong.gateway.surfaces import SURFACES, Address
from everlong.store import MemoryThreads
from everlong.summarize import Summary, encode_summary
from everlong.wire import format_named
from tests.core.build import user

Value = dict[str, Any]
CHAT = next(surface for surface in SURFACES if surface.format is format_named("openai-chat"))
FILLING = " ".join(f"plain{number}" for number in range(60))


class Process:
    """The conversations of one process; its store is shared with others."""

    def __init__(self, store: MemoryThreads) -> None:
        self.state_store = StateStore(store, shared=True)
        self.threads = MemoryFirstThreads(self.state_store, lambda: 0.0)
        engine = Engine(self.threads, settings=Settings(summaries="off"))
        self.conversations = Conversations(engine, self.state_store, room=1 << 30)

    def request(self, length: int, *, asked_after: str | None = None, edited: int = 1_000) -> Conversation:
        """A request with so many messages arrives, or the job of one; from `edited` on they are others."""
        said = [
            {"role": ("user", "assistant")[at % 2], "content": f"message {at}: {FILLING}" + " again" * (at >= edited)}
            for at in range(length)
        ]
        body = json.dumps({"model": "gpt-4o", "messages": said}).encode()
        transcript = self.conversations.transcript(parse_request(Address(surface=CHAT), body), "one")
        conversation = self.conversations.enter("one", replace(transcript, asked_after=asked_after))
        self.conversations.leave(conversation)
        return conversation

    def append(self, conversation: Conversation, *entries: Entry) -> None:
        """The engine adds something to the thread."""
        self.threads.append(conversation.thread, entries)

    def recall(self, conversation: Conversation) -> None:
        """The engine adds what the newest question needs."""
        self.append(conversation, Recalled(conversation.starts[-1], user("what was said about it")))

    def commit(self, conversation: Conversation) -> bool:
        """Store what was added."""
        return self.conversations.commit(conversation)

    def recalled(self, conversation: Conversation) -> int:
        """How many recalled blocks are sent: those after the newest point."""
        rows = list(self.threads.read(conversation.thread))
        newest = max((row.order for row in rows if isinstance(row.entry, Point)), default=-1)
        return sum(isinstance(row.entry, Recalled) for row in rows if row.order > newest)

    def listed(self, conversation: Conversation) -> str:
        """The kinds of the marks in the store, in their order."""
        names = self.state_store.list_of_marks("one", conversation.root) or ()
        return "".join(Listed.of(name).kind for name in names)


def compaction(text: str, boundary: int = 2) -> Point:
    return Point(boundary=boundary, summary=(user(text),), tokens_before=900, tokens_after=300, limit=1_000, model="m")


def beside(point: Point) -> Point:
    """A summary that leaves what the point left."""
    summary = Summary(style="structured", language="en", covers=point.boundary)
    return replace(point, reason=SUMMARY, account=encode_summary(summary))


def compacted() -> tuple[Process, Process, Conversation]:
    """Two processes, and a conversation that the first one compacted."""
    store = MemoryThreads()
    one, other = Process(store), Process(store)
    here = one.request(5)
    one.append(here, compaction("in short"))
    assert one.commit(here)
    return one, other, here


def test_a_summary_that_comes_after_anothers_recall_does_not_hide_it() -> None:
    one, other, here = compacted()
    there = other.request(7)
    other.recall(there)
    assert other.commit(there)
    one.append(here, beside(compaction("in short")))
    assert one.commit(here)
    assert one.listed(here) == Kind.POINT + Kind.RECALLED + Kind.BESIDE
    here = one.request(9)
    assert one.recalled(here) == other.recalled(other.request(9)) == 1


def test_what_is_recalled_right_after_a_summary_beside_is_stored_too() -> None:
    one, other, here = compacted()
    one.append(here, beside(compaction("in short")))
    here = one.request(7)
    one.recall(here)
    assert one.commit(here)
    assert one.listed(here) == Kind.POINT + Kind.BESIDE + Kind.RECALLED
    assert one.recalled(one.request(9)) == other.recalled(other.request(9)) == 1


def test_what_was_recalled_before_a_summary_beside_is_stored_once() -> None:
    one, _, here = compacted()
    here = one.request(7)
    one.recall(here)
    recalled = next(iter(one.threads.last(here.thread, 1))).entry
    one.append(here, beside(compaction("in short")), recalled)
    assert one.commit(here)
    assert one.listed(here) == Kind.POINT + Kind.RECALLED + Kind.BESIDE


def test_a_compaction_and_the_summary_beside_it_keep_their_kinds() -> None:
    one, _, here = compacted()
    here = one.request(9)
    again = compaction("shorter still", boundary=4)
    one.append(here, again, beside(again))
    assert one.commit(here)
    assert one.listed(here) == Kind.POINT + Kind.POINT + Kind.BESIDE


def test_a_summary_that_was_not_stored_yet_is_not_lost_when_anothers_recall_comes() -> None:
    one, other, here = compacted()
    there = other.request(7)
    other.recall(there)
    assert other.commit(there)
    one.append(here, beside(compaction("in short")))  # the summary is there, and the next request comes first
    here = one.request(9)
    assert one.commit(here)
    assert one.listed(here) == Kind.POINT + Kind.RECALLED + Kind.BESIDE
    assert one.recalled(one.request(9)) == other.recalled(other.request(9)) == 1


def test_a_job_that_comes_late_hides_no_compaction_from_the_next_request() -> None:
    """The compaction covers all that the job knows, so it does not apply to the job, but to whatever comes later."""
    one, other, here = compacted()
    there = other.request(9)
    other.append(there, compaction("shorter still", boundary=there.starts[7]))
    assert other.commit(there)
    late = one.request(7, asked_after=here.newest)
    one.append(late, beside(compaction("in short")))
    assert not one.commit(late)
    here = one.request(11)
    newest = one.conversations.points(here)[-1][0].entry
    assert isinstance(newest, Point)
    assert newest.summary == (user("shorter still"),)
    assert one.listed(here) == Kind.POINT + Kind.POINT


def test_a_job_of_a_branch_is_not_overtaken_by_what_a_longer_branch_had_before() -> None:
    one, other, _ = compacted()
    longer = other.request(11)
    other.append(longer, compaction("the longer branch", boundary=longer.starts[9]))
    assert other.commit(longer)
    branch = one.request(7, edited=5)
    again = compaction("the branch", boundary=branch.starts[6])
    one.append(branch, again)
    assert one.commit(branch)
    job = other.request(7, edited=5, asked_after=branch.newest)
    other.append(job, beside(replace(again, boundary=job.starts[6])))
    assert other.commit(job)
    assert one.listed(branch) == Kind.POINT * 3 + Kind.BESIDE


def test_whoever_follows_a_compaction_of_another_process_knows_what_that_one_learned() -> None:
    store = MemoryThreads()
    one, other = Process(store), Process(store)
    assert other.threads.fact("window", "m") is None
    here = one.request(5)
    one.threads.keep_fact("window", "m", "3000")
    one.append(here, compaction("in short"))
    assert one.commit(here)
    one.state_store.flush()
    assert other.threads.fact("window", "m") is None  # nothing told it to look
    other.request(7)
    assert other.threads.fact("window", "m") == "3000"
