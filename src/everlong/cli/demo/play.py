"""The sample conversation held again, live: its people and tools speak, a scripted model answers, the engine keeps it.

Owns how the demonstration is played and what is told of it. Every figure is read from the requests that the model
really got and the events that the store really has; nothing is drawn here.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from everlong.core import CallId, Event, EventKind, History, Message, Reasoning, Recalled, Role, Text, ToolResult
from everlong.engine import Call, Engine, Failed, Finished, Settings, Threads, converse, text_title
from everlong.errors import ProviderError
from everlong.llm import Answer, Asked, ScriptedModel, Window, in_turn
from everlong.wire import Document

__all__ = ["FACTS", "THREAD", "Fact", "Found", "Outcome", "Play", "Turn"]

THREAD = "demo"
MODEL = "gpt-4o"
REPLY = 1_000  # tokens that an answer may take; the longest of the sample has 400
LAST_WORDS = Answer(text="…")  # the sample ends with a question


@dataclass(frozen=True, slots=True)
class Fact:
    """Something the last question asks for, and the words that answer it; any of them will do."""

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
    """One thing the user said and all that followed. `said` is the conversation so far, `sent` the last request."""

    number: int
    title: str
    said: int
    sent: int
    cuts: tuple[Event, ...]
    #: Whether this is the first turn that the whole conversation would not have fitted.
    full: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A fact: the turn in which it was said, and the line of the last request that has it, "" if none does."""

    fact: Fact
    turn: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What there is to say at the end. Tokens are those of requests as the model counted them."""

    requests: int
    refused: int
    largest: int
    last: int
    cached: float
    recalled: int
    said: int
    messages: int
    facts: tuple[Found, ...]


class Play:
    """One performance in a store; `turns` first, then `outcome`."""

    def __init__(self, document: Document, threads: Threads, window: int) -> None:
        answers = [_answer(message) for message in document.messages if message.role is Role.ASSISTANT]
        self.document, self.threads, self.window = document, threads, window
        self.model = ScriptedModel(in_turn([*answers, LAST_WORDS]), window=Window(window, told=True))
        self.engine = Engine(threads, settings=Settings(mode="trim"))
        self.call = Call(model=MODEL, tools=document.tools, max_tokens=min(REPLY, window // 4))

    async def turns(self) -> AsyncIterator[Turn]:
        """Each turn when it is over."""
        self.threads.create(THREAD, title="Wick")
        count = self.model.counter
        said, event, full = count.tools(self.document.tools), "", False
        for number, messages in enumerate(_by_user(self.document.messages)):
            await self._hold(messages)
            said += count.messages(messages)
            if number == 0:
                continue  # the system text stands before the first turn
            asked = said - (count.message(messages[-1]) if messages[-1].role is Role.ASSISTANT else 0)
            filled = not full and asked + (self.call.max_tokens or 0) > self.window
            full = full or filled
            events = self.threads.events(THREAD, after=event)
            cuts = tuple(one for one in events if one.kind is EventKind.CONTEXT_COMPRESSED)
            event = events[-1].id
            title = text_title(messages[0].text)
            yield Turn(number, title, said, self.model.requests[-1].tokens, cuts, filled)

    async def _hold(self, messages: History) -> None:
        """What the people and tools say is appended, what the assistant says is asked for."""
        ids: dict[CallId, CallId] = {}
        for message in messages:
            if message.role is Role.ASSISTANT:
                answer = await self._asked()
                ids |= dict(zip((one.id for one in message.calls), (one.id for one in answer.calls), strict=True))
            else:
                await self.engine.append(THREAD, [_renamed(message, ids)])
        if messages[-1].role is Role.USER:
            await self._asked()

    async def _asked(self) -> Message:
        async for reply in converse(self.engine, self.model, THREAD, self.call):
            match reply:
                case Finished(message):
                    return message
                case Failed(error):
                    raise error
                case _:
                    continue
        raise ProviderError("the scripted model fell silent")

    def outcome(self) -> Outcome:
        """Read from the requests and the store."""
        asked = self.model.requests
        rows = list(self.threads.read(THREAD))
        refusals = self.threads.events(THREAD, kinds=[EventKind.OVERFLOW_DETECTED])
        return Outcome(
            requests=len(asked),
            refused=len(refusals),
            largest=max(one.tokens for one in asked),
            last=asked[-1].tokens,
            cached=sum(one.cached for one in asked) / sum(one.tokens for one in asked),
            recalled=sum(isinstance(row.entry, Recalled) for row in rows),
            said=self.model.counter.messages(self.document.messages) + self.model.counter.tools(self.document.tools),
            messages=sum(isinstance(row.entry, Message) for row in rows) - 1,  # without the model's last words
            facts=tuple(self._found(fact, asked[-1]) for fact in FACTS),
        )

    def _found(self, fact: Fact, asked: Asked) -> Found:
        lines = [line for message in asked.messages for text in _texts(message) for line in text.split("\n")]
        line = next((line for line in lines if any(needle in line for needle in fact.needles)), "")
        needle = next((needle for needle in fact.needles if needle in line), fact.needles[-1])
        turns = enumerate(_by_user(self.document.messages))
        turn = next(
            number
            for number, messages in turns
            if any(needle in text for message in messages for text in _texts(message))
        )
        return Found(fact, turn, line.strip())


def _answer(message: Message) -> Answer:
    thoughts = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    calls = tuple((call.name, call.arguments) for call in message.calls)
    return Answer(text=message.text, thinking=thoughts, calls=calls)


def _by_user(messages: History) -> Iterator[History]:
    """What stands before the first user message, then a piece a turn."""
    starts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    edges = [0, *starts, len(messages)]
    return (messages[start:stop] for start, stop in pairwise(edges))


def _renamed(message: Message, ids: dict[CallId, CallId]) -> Message:
    """Results answer the calls that were made this time."""
    parts = (replace(part, call=ids[part.call]) if isinstance(part, ToolResult) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _texts(message: Message) -> Iterator[str]:
    return (part.text for part in message.parts if isinstance(part, Text | ToolResult))
