"""Draws what each preset sends over a conversation of 60 turns, for docs/presets.md, in English and Chinese.

python scripts/draw_presets.py writes docs/images/preset-NAME.svg and preset-NAME.zh.svg python scripts/draw_presets.py
--check exits 1 if a picture is out of date

All presets get the same conversation: in each turn a question and an answer of about 1,000 tokens, and in every third
turn a tool reads two files of about 2,000 tokens. The engine plays it with scripted models in a window of 64,000
tokens.
"""

import asyncio
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from everlong import Message, Role, Text
from everlong.core import CallId, EventKind, ToolResult
from everlong.engine import Author, Call, Engine, Finished, Settings, Summaries, converse
from everlong.llm import Answer, ReceivedRequest, ScriptedModel, Step
from everlong.store import MemoryThreads
from picture import LANGUAGES, Picture, file_name, number, update

PRESETS = ("auto", "nanobot", "nanobot-v3", "static-buffer", "chatbox", "simple")
TURNS, WINDOW, TALLEST = 60, 64_000, 80_000
THREAD, MODEL = "talk", "gpt-4o"
WORDS = ("harbour", "lantern", "copper", "meadow", "signal", "winter", "bridge", "kettle", "orchard", "paper", "river")

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1_000, 330, 64, 190, 62, 44  # pixels


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the tokens of its last request and of the conversation so far, and the summaries written by then."""

    sent: int
    said: int
    summaries: int


def words(count: int, seed: str) -> str:
    """Return this many words, the same for the same seed."""
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(WORDS)}{chosen.randrange(1_000)}" for _ in range(count))


def talks(asked: ReceivedRequest) -> Step:
    """Answer a question; in every third turn, read two files first."""
    last = next(at for at in range(len(asked.messages) - 1, -1, -1) if asked.messages[at].role is Role.USER)
    turn = int(asked.messages[last].text.rpartition(" ")[2])
    read = sum(bool(message.results) for message in asked.messages[last:])
    if turn % 3 == 0 and read < 2:
        return Answer(calls=(("read_file", json.dumps({"path": f"plans/{turn}-{read}.txt"})),))
    return Answer(text=words(500, f"answer {turn}"))


def summarises(_: ReceivedRequest) -> Step:
    """Return a summary of the conversation that suits every style."""
    said = "The user asks for page after page of the plans."
    context = dict.fromkeys(("context", "ongoing_context", "current_state"), said)
    return Answer(text=json.dumps({**context, "what_happened": [said], "finished_tasks": [said]}))


async def play(preset: str) -> list[Turn]:
    """Play the conversation and return its turns."""
    store, model = MemoryThreads(), ScriptedModel(talks)
    engine = Engine(store, settings=Settings(preset=preset, window=WINDOW))
    author = Author(model=ScriptedModel(summarises, endpoint="author"), name=MODEL, seconds=600.0)
    summaries = Summaries(engine, [author], own_model=False)
    store.create(THREAD)
    store.append(THREAD, [Message(Role.SYSTEM, (Text("You keep the plans of a harbour."),))])
    turns: list[Turn] = []
    for turn in range(1, TURNS + 1):
        await engine.append(THREAD, [Message(Role.USER, (Text(f"Which plans are on page {turn}"),))])
        await answered(engine, model, turn)
        await summaries.drain()
        said = sum(model.counter.message(row.entry) for row in store.read(THREAD) if isinstance(row.entry, Message))
        written = len(store.events(THREAD, kinds=[EventKind.SUMMARY_APPLIED.value]))
        turns.append(Turn(model.requests[-1].tokens, said, written))
    return turns


async def answered(engine: Engine, model: ScriptedModel, turn: int) -> None:
    """Let the model answer, and give it the results of its calls."""
    for step in range(3):
        replies = [reply async for reply in converse(engine, model, THREAD, Call(model=MODEL, max_tokens=4_096))]
        last = replies[-1]
        if not isinstance(last, Finished):
            raise SystemExit(f"turn {turn} failed: {last}")
        if not last.message.calls:
            return
        text = "\n".join(words(12, f"{turn} {step} {line}") for line in range(80))
        results = [ToolResult(CallId(call.id), (Text(text),), name=call.name) for call in last.message.calls]
        await engine.append(THREAD, [Message(Role.TOOL, (result,)) for result in results])


def drawing(preset: str, turns: list[Turn], language: int) -> str:
    """Draw what a preset sends in each turn, next to the whole conversation."""
    title = (f"{preset}: what it sends in each of {TURNS} turns", f"{preset}：{TURNS} 轮对话，每轮发送多少")
    picture = Picture(WIDTH, HEIGHT, title, language=language)
    picture.text((24, 36), title, size=18, bold=True)
    for tokens in (0, 20_000, 40_000, 60_000, TALLEST):
        picture.line((LEFT, height(tokens)), (WIDTH - RIGHT, height(tokens)), "grid")
        picture.text(
            (LEFT - 10, height(tokens) + 5),
            f"{tokens // 1_000}k" if tokens else "0",
            colour="muted",
            size=14,
            anchor="end",
        )
    for turn in (1, *range(10, TURNS + 1, 10)):
        words = (f"turn {turn}", f"第 {turn} 轮")
        picture.text((across(turn), HEIGHT - BOTTOM + 24), words, colour="muted", size=14, anchor="middle")
    picture.line((LEFT, height(WINDOW)), (WIDTH - RIGHT, height(WINDOW)), "red", width=1.5, dashes="6 4")
    end = WIDTH - RIGHT + 14
    picture.text((end, height(WINDOW) + 5), (f"window: {number(WINDOW)}", f"窗口：{number(WINDOW)}"), colour="red")
    whole = path([turn.said for turn in turns])
    words = (f"conversation: {number(turns[-1].said)}", f"整个对话：{number(turns[-1].said)}")
    picture.curve(whole, "orange", width=2)
    picture.text((whole[-1][0] + 10, height(TALLEST) + 2), words, colour="orange")
    sent = path([turn.sent for turn in turns])
    picture.area([(sent[0][0], height(0)), *sent, (sent[-1][0], height(0))], "blue", opacity=0.15)
    picture.curve(sent, "blue")
    picture.text(
        (end, sent[-1][1] + 5), (f"sent: {number(turns[-1].sent)}", f"发送：{number(turns[-1].sent)}"), colour="blue"
    )
    written = [0, *(turn.summaries for turn in turns)]
    marks = [at for at in range(1, TURNS + 1) if written[at] > written[at - 1]]
    for at in marks:
        picture.dot((across(at), height(turns[at - 1].sent)), 5.5, "green")
    if marks:
        words = (f"{len(marks)} summaries", f"{len(marks)} 次摘要") if len(marks) > 1 else ("one summary", "1 次摘要")
        picture.dot((end + 5, sent[-1][1] + 27), 5.5, "green")
        picture.text((end + 16, sent[-1][1] + 32), words, colour="green")
    return picture.svg()


def across(turn: int) -> float:
    """Return the horizontal place of a turn."""
    return LEFT + (turn - 1) * (WIDTH - LEFT - RIGHT) / (TURNS - 1)


def height(tokens: int) -> float:
    """Return the vertical place of a number of tokens."""
    return HEIGHT - BOTTOM - tokens * (HEIGHT - TOP - BOTTOM) / TALLEST


def path(values: list[int]) -> list[tuple[float, float]]:
    """Return the places of a line with one value per turn."""
    # The line ends at the first value above the picture; a flat line along the top would be misleading.
    return [(across(at), height(value)) for at, value in takewhile(lambda it: it[1] <= TALLEST, enumerate(values, 1))]


def pictures() -> Iterator[tuple[str, str]]:
    """Yield every picture with the name of its file."""
    for preset in PRESETS:
        turns = asyncio.run(play(preset))
        for language in LANGUAGES:
            yield file_name(f"preset-{preset}", language), drawing(preset, turns, language)


def main() -> int:
    """Write the pictures, or say whether they are up to date."""
    return update(pictures(), check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
