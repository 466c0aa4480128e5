"""`everlong demo`: a long conversation played live in a small window, with no key and no network.

The sample conversation is replayed: its people and tools speak, a scripted model answers, and the engine keeps it
within the window. Every figure comes from the requests that the model really received and the events that are really in
the store.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from everlong.cli.terminal.files import sample_document
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, bar, console
from everlong.cli.terminal.text import one_line
from everlong.cli.variables import engine_settings
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.core import CallId, Event, EventKind, History, Message, Reasoning, Recalled, Role, Text, ToolResult
from everlong.engine import DEFAULT_SETTINGS, Call, Engine, Failed, Finished, Settings, Threads, converse, text_title
from everlong.errors import ContextOverflow, InputError, ProviderError
from everlong.llm import Answer, ReceivedRequest, ScriptedModel, Window, in_turn
from everlong.store import open_store
from everlong.wire import Document

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text as RichText

__all__ = ["FACTS", "THREAD", "Fact", "FactCheck", "Outcome", "Play", "Turn", "run"]

THREAD = "demo"
MODEL = "gpt-4o"
#: A scripted model cannot write summaries.
SCRIPTED = Settings(mode="trim")
REPLY = 1_000  # tokens that an answer may take; the longest of the sample has 400
LAST_WORDS = Answer(text="…")  # the sample ends with a question
NUMBER, TOKENS, BAR, WIDEST = 2, 7, 20, 100  # columns
LED_BY = 24  # characters of a line that are shown before the fact


def run(
    window: int | None, preset: str | None, store: str, json_wanted: bool, language: Language, sizes: tuple[int, int]
) -> None:
    """Play the sample conversation and show what happens; `sizes` are the smallest window and the usual one."""
    settings, (smallest, usual) = engine_settings(preset), sizes
    if window is None and settings.window is not None and settings.window < smallest:
        raise InputError(f"EVERLONG_WINDOW: the demo needs a window of at least {amount(smallest)} tokens")
    size = window or settings.window or usual
    settings = replace(settings, window=None, mode="off" if settings.mode == "off" else "trim")
    _show(size, settings, store, json_wanted=json_wanted, language=language)


# --- the play; field names are keys of --json --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the last question asks for, and the texts that answer it; one of them is enough."""

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
    """A user message and what followed: the tokens of the conversation (`said`) and of the last request (`sent`)."""

    number: int
    title: str
    said: int
    sent: int
    cuts: tuple[Event, ...]
    #: Whether the whole conversation no longer fits the window from this turn on.
    full: bool


@dataclass(frozen=True, slots=True)
class FactCheck:
    """A fact: the turn in which it was said, and the line of the last request that has it; "" if none has."""

    fact: Fact
    turn: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures at the end. Tokens of requests are as the model counted them."""

    #: Whether the model finally refused a request before the conversation was over.
    ended: bool
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

    def __init__(self, document: Document, threads: Threads, window: int, settings: Settings = SCRIPTED) -> None:
        answers = [_answer(message) for message in document.messages if message.role is Role.ASSISTANT]
        self.document, self.threads, self.window = document, threads, window
        self.model = ScriptedModel(in_turn([*answers, LAST_WORDS]), window=Window(window, told=True))
        self.settings, self.ended = settings, False
        self.engine = Engine(threads, settings=self.settings)
        self.call = Call(model=MODEL, tools=document.tools, max_tokens=min(REPLY, window // 4))

    async def turns(self) -> AsyncIterator[Turn]:
        """Play the conversation; yield each turn when it is over. A request that is finally refused ends it."""
        self.threads.create(THREAD, title="Wick")
        count = self.model.counter
        said, event, full = count.tools(self.document.tools), "", False
        for number, messages in enumerate(_by_user(self.document.messages)):
            played = await self._play(messages)
            said += count.messages(messages)
            if number == 0:
                continue  # system text comes before the first turn
            prompt = said - (count.message(messages[-1]) if messages[-1].role is Role.ASSISTANT else 0)
            filled = not full and prompt + (self.call.max_tokens or 0) > self.window
            full = full or filled
            events = self.threads.events(THREAD, after=event)
            cuts = tuple(happened for happened in events if happened.kind is EventKind.CONTEXT_COMPRESSED)
            if self.settings.rules.every_call:
                cuts = cuts[-1:]  # it makes one for each request
            event = events[-1].id
            title = text_title(messages[0].text)
            yield Turn(number, title, said, self.model.requests[-1].tokens, cuts, filled)
            if not played:
                return

    async def _play(self, messages: History) -> bool:
        """Append the messages of people and tools, and let the model give the assistant's; return whether it could."""
        try:
            await self._speak(messages)
        except ContextOverflow:
            self.ended = True
        return not self.ended

    async def _speak(self, messages: History) -> None:
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
            ended=self.ended,
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

    def _check(self, fact: Fact, request: ReceivedRequest) -> FactCheck:
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
    """Yield the messages before the first user message, then those of each turn."""
    starts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    edges = [0, *starts, len(messages)]
    return (messages[start:stop] for start, stop in pairwise(edges))


def _renamed(message: Message, ids: dict[CallId, CallId]) -> Message:
    """Return a message whose results answer the calls made in this run."""
    parts = (replace(part, call=ids[part.call]) if isinstance(part, ToolResult) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _texts(message: Message) -> Iterator[str]:
    return (part.text for part in message.parts if isinstance(part, Text | ToolResult))


# --- on a terminal -----------------------------------------------------------------------------


def _show(window: int, settings: Settings, store: str, *, json_wanted: bool, language: Language) -> None:
    """Play the conversation and show it. Without a store, nothing is kept."""
    with open_store(store or "memory:") as threads:
        play = Play(sample_document(), threads, window, settings)
        if json_wanted:
            asyncio.run(_print_json(play))
            return
        stage = _Stage(console(), Words(language, "demo"), window, settings.rules.name)
        asyncio.run(stage.show(play))
        if store:
            stage.paragraph(stage.say("look", thread=THREAD, store=store), "dim")


async def _print_json(play: Play) -> None:
    turns = [asdict(turn) | {"cuts": [_cut(cut) for cut in turn.cuts]} async for turn in play.turns()]
    outcome = asdict(play.outcome())
    print_json({"window": play.window, "preset": play.settings.rules.name, "turns": turns, **outcome})


def _cut(cut: Event) -> dict[str, object]:
    return {"reason": cut.reason, "tokens_before": cut.tokens_before, "tokens_after": cut.tokens_after}


class _Stage:
    """Draws the play as it happens, in 80 to 100 columns."""

    def __init__(self, out: "Console", say: Words, window: int, preset: str) -> None:
        self.out, self.say, self.window, self.preset = out, say, window, preset
        self.width = min(out.width, WIDEST)

    async def show(self, play: Play) -> None:
        """Show each turn when it is over, then the outcome."""
        self._head()
        async for turn in play.turns():
            self._turn(turn)
        self._end(play.outcome())

    def paragraph(self, text: str, style: str = "") -> None:
        """Print text that may take several lines."""
        self.out.print(self._words(text, style), width=self.width)

    def _words(self, text: str, style: str = "") -> "RichText":
        from rich.text import Text as RichText  # noqa: PLC0415 - only where it is seen

        return RichText(text, style=style)

    def _line(self, pieces: Sequence[tuple[str, str, int]]) -> None:
        """Print pieces of (text, style, columns), two columns apart; negative columns are aligned right."""
        line = self._words("")
        for text, style, columns in pieces:
            piece = self._words(text, style)
            piece.truncate(abs(columns), overflow="ellipsis")
            gap = " " * (abs(columns) - piece.cell_len)
            line.append(gap if columns < 0 else "").append_text(piece).append(gap if columns > 0 else "").append("  ")
        line.rstrip()
        self.out.print(line, no_wrap=True, overflow="ellipsis")

    @property
    def _titles(self) -> int:
        return max(10, self.width - (NUMBER + TOKENS + BAR + TOKENS + 8))

    def _head(self) -> None:
        self.out.print()
        self.paragraph(self.say("title"), "bold")
        self.paragraph(self.say("explained", window=amount(self.window)))
        if self.preset != DEFAULT_SETTINGS.rules.name:
            self.paragraph(self.say("by_preset", preset=self.preset))
        self.out.print()
        sent = self.say("head_sent")
        self._line([("", "", NUMBER + 2 + self._titles), (self.say("head_said"), "dim", -TOKENS), (sent, "dim", BAR)])

    def _turn(self, turn: Turn) -> None:
        beside = NUMBER + 2
        if turn.full:
            self._line([("", "", NUMBER), (f"── {self.say('full')} ──", "yellow", self.width - beside)])
        self._line(
            [
                (str(turn.number), "dim", -NUMBER),
                (one_line(turn.title), "", self._titles),
                (amount(turn.said), "yellow" if turn.said > self.window else "", -TOKENS),
                (bar(turn.sent, self.window, BAR).ljust(BAR, "·"), "green", BAR),
                (amount(turn.sent), "", -TOKENS),
            ]
        )
        for cut in turn.cuts:
            text = self.say("cut", before=amount(cut.tokens_before or 0), after=amount(cut.tokens_after or 0))
            self._line([("", "", NUMBER), (f"└ {text}", "cyan", self.width - beside)])

    def _end(self, outcome: Outcome) -> None:
        say = self.say
        self.out.print()
        if outcome.ended:
            self.paragraph(say("ended"), "bold yellow")
            return
        self.paragraph(say("asked"), "bold")
        for check in outcome.facts:
            names = [(say("turn", n=str(check.turn)), "dim", 8), (say(check.fact.key), "", 13)]
            shown = one_line(check.line) or say("left_out")
            style = "" if check.line else "yellow"
            sign = ("✓", "bold green", 1) if check.line else ("✗", "bold red", 1)
            self._line([sign, *names, (_around(shown, check.fact.needles), style, self.width - 28)])
        self.out.print()
        figures = {"requests": str(outcome.requests), "refused": str(outcome.refused)}
        sizes = {"largest": amount(outcome.largest), "window": amount(self.window)}
        said = {"said": amount(outcome.said), "messages": amount(outcome.messages)}
        self.paragraph(say("requests", **figures, **sizes))
        self.paragraph(say("cached", share=f"{100 * outcome.cached:.0f} %"))
        self.paragraph(say("kept", **said))


def _around(line: str, needles: Sequence[str]) -> str:
    """Return the line from shortly before the fact on, so that it is visible in a narrow column."""
    at = next((line.index(needle) for needle in needles if needle in line), 0)
    return line if at <= LED_BY else "…" + line[at - LED_BY :]
