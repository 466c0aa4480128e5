"""Small sessions for replays, whose sizes can be told without a counter: `words(100)` is a message of 100 tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from everlong.core import History, Message, Role
from everlong.lab.cases import Case
from everlong.lab.replay.courses import Beside, Policy, Sending, Terms
from everlong.lab.replay.results import SessionFacts
from everlong.lab.replay.sessions import Session
from everlong.wire import Usage
from tests.lab.folders import said

FRAME = 4  # tokens around each message


def words(tokens: int, role: Role = Role.USER, begin: str = "") -> Message:
    """A message of so many tokens; a beginning is counted as well, a token for each word that starts with a blank."""
    return said(role, begin + " on" * (tokens - FRAME - begin.count(" ")))


def talk(*sizes: int) -> History:
    """User and assistant in turn, each message of so many tokens."""
    return tuple(words(size, (Role.USER, Role.ASSISTANT)[at % 2]) for at, size in enumerate(sizes))


def session(messages: Sequence[Message], *cases: Case, times: tuple[float | None, ...] = ()) -> Session:
    facts = SessionFacts(id="s", source="ours", messages=len(messages), tokens=sum(len(m.text) for m in messages))
    return Session(facts=facts, messages=tuple(messages), cases=cases, times=times)


@dataclass
class Scripted:
    """A policy that sends what it was told to, a function of what was said for each request; `last` at its end."""

    terms: Terms
    sendings: list[Callable[[History], Sending]]
    said: list[Message] = field(default_factory=list)
    last: tuple[Beside, ...] = ()

    def say(self, messages: History) -> None:
        self.said.extend(messages)

    def ask(self, moment: float) -> Sending:
        return self.sendings.pop(0)(tuple(self.said))

    def receive(self, usage: Usage, answer: Message) -> None:
        self.said.append(answer)

    def close(self) -> tuple[Beside, ...]:
        assert not self.sendings, "every request was made"
        return self.last


def told_policy(*sendings: Callable[[History], Sending], last: tuple[Beside, ...] = ()) -> Policy:
    return Policy("told", lambda terms: Scripted(terms, list(sendings), last=last))
