"""Draws what each design document's preset sends over a conversation of 60 turns, for docs/presets.md.

python scripts/draw_presets.py            writes docs/images/preset-NAME.svg
python scripts/draw_presets.py --check    exits 1 if a picture is out of date

The conversation is the same for all: a question a turn, an answer of about 1,000 tokens, and in every third turn two
files of about 2,000 tokens that a tool reads. The engine plays it with scripted models in a window of 64,000 tokens.
"""

import asyncio
import json
import random
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from everlong import Message, Role, Text
from everlong.core import CallId, EventKind, ToolResult
from everlong.engine import Author, Call, Engine, Finished, Settings, Summaries, converse
from everlong.llm import Answer, ReceivedRequest, ScriptedModel, Step
from everlong.store import MemoryThreads

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PRESETS = ("nanobot", "nanobot-v3", "static-buffer", "chatbox", "simple")
TURNS, WINDOW, TALLEST = 60, 64_000, 80_000
THREAD, MODEL = "talk", "gpt-4o"
WORDS = ("harbour", "lantern", "copper", "meadow", "signal", "winter", "bridge", "kettle", "orchard", "paper", "river")

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 300, 64, 20, 40, 44  # pixels
INK, GREY, BLUE, RED = "#1d2330", "#9aa3b2", "#2a6fdb", "#c0392b"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the tokens of its last request, of all that was said until then, and the summaries written after it."""

    sent: int
    said: int
    summaries: int


def words(count: int, seed: str) -> str:
    """So many words, the same for the same seed."""
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(WORDS)}{chosen.randrange(1_000)}" for _ in range(count))


def talks(asked: ReceivedRequest) -> Step:
    """Answer a question; in every third turn two files are read before."""
    last = next(at for at in range(len(asked.messages) - 1, -1, -1) if asked.messages[at].role is Role.USER)
    turn = int(asked.messages[last].text.rpartition(" ")[2])
    read = sum(bool(message.results) for message in asked.messages[last:])
    if turn % 3 == 0 and read < 2:
        return Answer(calls=(("read_file", json.dumps({"path": f"plans/{turn}-{read}.txt"})),))
    return Answer(text=words(500, f"answer {turn}"))


def summarises(_: ReceivedRequest) -> Step:
    """Say in every style what the conversation is about."""
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
    """Let the model answer, with the results of its calls."""
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


def drawing(preset: str, turns: list[Turn]) -> str:
    """The picture of one preset as SVG."""
    parts = [line(WINDOW, "window 64,000", GREY)]
    parts += [
        label(LEFT - 8, height(tokens) + 4, f"{tokens // 1_000}k", anchor="end") for tokens in (0, 20_000, 40_000)
    ]
    parts += [label(across(turn), HEIGHT - BOTTOM + 18, str(turn), anchor="middle") for turn in (1, *range(10, 61, 10))]
    parts.append(path([turn.said for turn in turns], GREY, 1.5))
    parts.append(path([turn.sent for turn in turns], BLUE, 2.5))
    marks = [at for at in range(1, TURNS + 1) if turns[at - 1].summaries > (turns[at - 2].summaries if at > 1 else 0)]
    parts += [
        f'<circle cx="{across(at):.1f}" cy="{height(turns[at - 1].sent):.1f}" r="4.5" fill="{RED}"/>' for at in marks
    ]
    told = f"{preset}: tokens of the request in each of {TURNS} turns (blue) and of all that was said (grey)"
    parts.append(label(LEFT, 22, told + (", summaries written (red)" if marks else ""), size=13))
    parts.append(label(across(TURNS), HEIGHT - 8, "turn", anchor="end"))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    font = 'font-family="Helvetica, Arial, sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>\n{ground}\n' + "\n".join(parts) + "\n</svg>\n"


def across(turn: int) -> float:
    """Where a turn stands."""
    return LEFT + (turn - 1) * (WIDTH - LEFT - RIGHT) / (TURNS - 1)


def height(tokens: int) -> float:
    """Where so many tokens stand."""
    return HEIGHT - BOTTOM - tokens * (HEIGHT - TOP - BOTTOM) / TALLEST


def path(values: list[int], colour: str, width: float) -> str:
    """A line through one value a turn."""
    # What is taller than the picture leaves it; a flat line at its top would say something else.
    shown = takewhile(lambda place: place[1] <= TALLEST, enumerate(values, 1))
    points = " ".join(f"{across(at):.1f},{height(value):.1f}" for at, value in shown)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def line(tokens: int, name: str, colour: str) -> str:
    """A dashed line at so many tokens, and what it is."""
    place = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height(tokens):.1f}" y2="{height(tokens):.1f}"'
    return f'<line {place} stroke="{colour}" stroke-dasharray="5 4"/>\n' + label(LEFT + 6, height(tokens) - 5, name)


def label(left: float, top: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    """A line of text."""
    return f'<text x="{left:.1f}" y="{top:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{INK}">{text}</text>'


def main() -> int:
    """Write the pictures, or say whether they are up to date."""
    stale = 0
    for preset in PRESETS:
        turns = asyncio.run(play(preset))
        picture, place = drawing(preset, turns), IMAGES / f"preset-{preset}.svg"
        if "--check" in sys.argv[1:]:
            stale += not place.is_file() or place.read_text(encoding="utf-8") != picture
            continue
        place.write_text(picture, encoding="utf-8")
        sizes = [turn.sent for turn in turns]
        print(f"{preset}: at most {max(sizes):,}, at the end {sizes[-1]:,} of {turns[-1].said:,}", end="; ")
        print(f"{turns[-1].summaries} summaries")
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
