"""How talk reads in an excerpt."""

from datetime import datetime

from everlong.compress.draft import Task, draft_of
from everlong.compress.excerpts import TalkQuotes
from everlong.compress.steps.choice.by_need import by_need
from everlong.core import Message, Role, Text
from everlong.relevance import Index
from everlong.tokens import Counter
from tests.core.build import assistant, user

COUNTER = Counter("gpt-4o")
FIRST, SECOND = datetime(2023, 5, 8, 9), datetime(2023, 5, 9, 9)


def said(name: str, text: str, time: datetime | None = None) -> Message:
    return Message(Role.ASSISTANT if name == "Ben" else Role.USER, (Text(text),), name, time)


def quoted(*messages: Message) -> str:
    index = Index()
    index.extend(messages)
    return TalkQuotes(messages, index, COUNTER).text(range(len(index.chunks)))


def test_turns_have_their_speaker_and_a_day_stands_once() -> None:
    talk = (said("Ann", "I moved.", FIRST), said("Ben", "Where?", FIRST), said("Ann", "Oslo.", SECOND))
    assert quoted(*talk) == "[2023-05-08]\nAnn: I moved.\nBen: Where?\n[2023-05-09]\nAnn: Oslo."


def test_without_names_and_times_the_role_stands_for_the_speaker() -> None:
    assert quoted(user("I moved."), assistant("Where?")) == "user: I moved.\nassistant: Where?"


def test_notes_are_quoted_bare() -> None:
    assert quoted(said("Ann", "I moved.", FIRST), said("Ann", "Oslo.", SECOND)) == "I moved.\nOslo."


def test_a_long_turn_names_its_speaker_once() -> None:
    text = "\n".join(f"line {n}" for n in range(45))
    assert quoted(said("Ann", text), said("Ben", "ok")) == f"Ann: {text}\nBen: ok"


def test_what_a_turn_costs_holds_the_day_only_where_it_is_new() -> None:
    talk = (said("Ann", "I moved.", FIRST), said("Ben", "Where?", FIRST))
    index = Index()
    index.extend(talk)
    quotes = TalkQuotes(talk, index, COUNTER)
    assert quotes.cost(0, ()) > quotes.cost(0, {quotes.day(0)}) == COUNTER.text("Ann: I moved.\n")


def test_a_talk_cut_down_keeps_what_is_asked_for_and_fills_the_budget() -> None:
    filler = [
        said("Ann" if n % 2 else "Ben", f"Small talk number {n} about nothing at all.", FIRST) for n in range(200)
    ]
    history = (*filler[:40], said("Ben", "The spare key is under the blue pot.", SECOND), *filler[40:])
    history = (*history, user("Where did you say the spare key is?"))
    task = Task(target=500, counter=COUNTER)
    after = by_need(draft_of(history, task), task)
    assert "[2023-05-09]\nBen: The spare key is under the blue pot." in "\n".join(m.text for m in after.messages)
    assert 0.95 * 500 <= after.total <= 500
