"""The sample conversation played again: its people and tools speak, a scripted model answers, the engine keeps it.

Every figure comes from the requests that the model really got and the events that the store really has. Nothing is
drawn here; the names of the fields are keys of `--json`.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from everlong.core import CallId, Event, EventKind, History, Message, Reasoning, Recalled, Role, Text, ToolResult
from everlong.engine import Call, Engine, Failed, Finished, Settings, Threads, converse, text_title
from everlong.errors import ProviderError
from everlong.llm import Answer, Asked, ScriptedModel, Window, in_turn
from everlong.wire import Document

__all__ = ["FACTS", "THREAD", "Fact", "FactCheck", "Outcome", "Play", "Turn"]

THREAD = "demo"
MODEL = "gpt-4o"
REPLY = 1_000  # tokens that an answer may take; the longest of the sample has 400
LAST_WORDS = Answer(text="…")  # the sample ends with a question


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the last question asks for, and the words that answer it; one of them is enough."""

    key: str
    needles: tuple[str, ...]


#: What the owner of the bookshops wants to know at the end, question by question.
FACTS = (
    Fact("fact_rounding", ("向下舍到角",)),
    Fact("fact_consignment", ("寄售书不取整",)),
    Fact("fact_ticket", ("Wednesday, 18 March", "3 月 18 日")),
    Fact("fact_money", ("¥1,601",)),
    Fact("fact_saturday", ("周六不要上线任何东西",)),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A user message and what followed: tokens of the conversation so far (`said`) and of the last request (`sent`)."""

    number: int
    title: str
    said: int
    sent: int
    cuts: tuple[Event, ...]
    #: Whether the whole conversation does not fit the window from this turn on.
    full: bool


@dataclass(frozen=True, slots=True)
class FactCheck:
    """A fact: the turn in which it was said, and the line of the last request that has it, "" if none does."""

    fact: Fact
    turn: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures at the end. Tokens of requests are as the model counted them."""

    requests: int
    refused: int
    largest: int
    last: int
    cached: float
    recalled: int
    said: int
    messages: int
    facts: tuple[FactCheck, ...]


class Play:
    """One performance in a store: iterate over `turns` first, then read `outcome`."""

    def __init__(self, document: Document, threads: Threads, window: int) -> None:
        answers = [_answer(message) for message in document.messages if message.role is Role.ASSISTANT]
        self.document, self.threads, self.window = document, threads, window
        self.model = ScriptedModel(in_turn([*answers, LAST_WORDS]), window=Window(window, told=True))
        self.engine = Engine(threads, settings=Settings(mode="trim"))
        self.call = Call(model=MODEL, tools=document.tools, max_tokens=min(REPLY, window // 4))

    async def turns(self) -> AsyncIterator[Turn]:
        """Play the conversation; yield each turn when it is over."""
        self.threads.create(THREAD, title="Wick")
        count = self.model.counter
        said, event, full = count.tools(self.document.tools), "", False
        for number, messages in enumerate(_by_user(self.document.messages)):
            await self._play(messages)
            said += count.messages(messages)
            if number == 0:
                continue  # the system text stands before the first turn
            prompt = said - (count.message(messages[-1]) if messages[-1].role is Role.ASSISTANT else 0)
            filled = not full and prompt + (self.call.max_tokens or 0) > self.window
            full = full or filled
            events = self.threads.events(THREAD, after=event)
            cuts = tuple(happened for happened in events if happened.kind is EventKind.CONTEXT_COMPRESSED)
            event = events[-1].id
            title = text_title(messages[0].text)
            yield Turn(number, title, said, self.model.requests[-1].tokens, cuts, filled)

    async def _play(self, messages: History) -> None:
        """Append what people and tools say, and let the model say what the assistant says."""
        ids: dict[CallId, CallId] = {}
        for message in messages:
            if message.role is Role.ASSISTANT:
                answer = await self._ask()
                ids |= dict(zip((call.id for call in message.calls), (call.id for call in answer.calls), strict=True))
            else:
                await self.engine.append(THREAD, [_renamed(message, ids)])
        if messages[-1].role is Role.USER:
            await self._ask()

    async def _ask(self) -> Message:
        async for reply in converse(self.engine, self.model, THREAD, self.call):
            match reply:
                case Finished(message):
                    return message
                case Failed(error):
                    raise error
                case _:
                    continue
        raise ProviderError("the scripted model did not finish its answer")

    def outcome(self) -> Outcome:
        """Return the figures, read from the requests and the store."""
        requests = self.model.requests
        rows = list(self.threads.read(THREAD))
        refusals = self.threads.events(THREAD, kinds=[EventKind.OVERFLOW_DETECTED])
        return Outcome(
            requests=len(requests),
            refused=len(refusals),
            largest=max(request.tokens for request in requests),
            last=requests[-1].tokens,
            cached=sum(request.cached for request in requests) / sum(request.tokens for request in requests),
            recalled=sum(isinstance(row.entry, Recalled) for row in rows),
            said=self.model.counter.messages(self.document.messages) + self.model.counter.tools(self.document.tools),
            messages=sum(isinstance(row.entry, Message) for row in rows) - 1,  # without the model's last words
            facts=tuple(self._check(fact, requests[-1]) for fact in FACTS),
        )

    def _check(self, fact: Fact, request: Asked) -> FactCheck:
        lines = [line for message in request.messages for text in _texts(message) for line in text.split("\n")]
        line = next((line for line in lines if any(needle in line for needle in fact.needles)), "")
        needle = next((needle for needle in fact.needles if needle in line), fact.needles[-1])
        turns = enumerate(_by_user(self.document.messages))
        turn = next(
            number
            for number, messages in turns
            if any(needle in text for message in messages for text in _texts(message))
        )
        return FactCheck(fact, turn, line.strip())


def _answer(message: Message) -> Answer:
    thoughts = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    calls = tuple((call.name, call.arguments) for call in message.calls)
    return Answer(text=message.text, thinking=thoughts, calls=calls)


def _by_user(messages: History) -> Iterator[History]:
    """Yield what is before the first user message, then the messages of each turn."""
    starts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    edges = [0, *starts, len(messages)]
    return (messages[start:stop] for start, stop in pairwise(edges))


def _renamed(message: Message, ids: dict[CallId, CallId]) -> Message:
    """Return a message whose results answer the calls that were made this time."""
    parts = (replace(part, call=ids[part.call]) if isinstance(part, ToolResult) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _texts(message: Message) -> Iterator[str]:
    return (part.text for part in message.parts if isinstance(part, Text | ToolResult))
