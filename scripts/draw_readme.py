"""Draws the pictures of the README: a conversation that outgrows its window, what survives, and what it costs.

python scripts/draw_readme.py            writes docs/images/outgrow*.svg, survives*.svg and cost*.svg
python scripts/draw_readme.py --check    exits 1 if a picture is out of date

The first picture is a run of `everlong demo`. The figures of the bars are read from the tables of
docs/lab/evidence.md and docs/lab/replay-figures.md.
"""

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from everlong.cli.runs.demo import THREAD, Play
from everlong.cli.terminal.files import sample_document
from everlong.core import EventKind, Message, Role
from everlong.store import MemoryThreads
from picture import LANGUAGES, ROOT, Picture, Words, file_name, number, update

# --- the conversation that outgrows its window ----------------------------------------------------

WINDOW = 16_000  # the window of `everlong demo`
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1_200, 480, 84, 250, 76, 56  # pixels
TALLEST = 54_000  # tokens at the top of the plot
SECONDS = 12  # duration of one pass of the animation; the lines take the first two thirds


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its turn, its tokens, those of the whole conversation, and whether a compaction preceded it."""

    turn: int
    sent: int
    held: int
    compacted: bool


def played() -> list[Request]:
    """Play the sample conversation as `everlong demo` does, and return its requests."""
    threads = MemoryThreads()
    play = Play(sample_document(), threads, WINDOW)
    asyncio.run(_played(play))
    count = play.model.counter
    points = len(threads.events(THREAD, kinds=[EventKind.CONTEXT_COMPRESSED]))
    held, turn, requests = count.tools(play.document.tools), 0, list[Request]()
    for row in threads.read(THREAD):
        if not isinstance(row.entry, Message):
            continue
        if row.entry.role is Role.ASSISTANT:
            sent = play.model.requests[len(requests)].tokens
            requests.append(Request(turn, sent, held, bool(requests) and sent < requests[-1].sent))
        turn += row.entry.role is Role.USER
        held += count.message(row.entry)
    if sum(request.compacted for request in requests) != points:
        raise SystemExit(f"{points} compactions, but other drops in the size of requests")
    return requests


async def _played(play: Play) -> None:
    async for _ in play.turns():
        pass
    outcome = play.outcome()
    if outcome.refused or not all(check.line for check in outcome.facts):
        raise SystemExit("a request was refused, or a fact is missing: the picture would lie")


def outgrow(requests: list[Request], language: int, *, animated: bool = False) -> str:
    """Draw the conversation that outgrows its window."""
    title = ("A conversation outgrows its context window and goes on", "对话超出上下文窗口之后照常进行")
    picture = Picture(WIDTH, HEIGHT, title, language=language)
    places = [_across(at, len(requests)) for at in range(len(requests))]
    held = [(left, _height(request.held)) for left, request in zip(places, requests, strict=True)]
    sent = [(left, _height(request.sent)) for left, request in zip(places, requests, strict=True)]
    ground = _height(0)
    picture.area([(places[0], ground), *held, (places[-1], ground)], "orange", opacity=0.08)
    picture.area([(places[0], ground), *sent, (places[-1], ground)], "blue", opacity=0.18)
    picture.curve(held, "orange", width=3.5)
    picture.curve(sent, "blue", width=3)
    compactions = [place for request, place in zip(requests, sent, strict=True) if request.compacted]
    for place in compactions:
        picture.dot(place, 5.5, "blue")
    left, top = compactions[0]
    picture.text((left, top + 25), ("compaction", "压缩"), colour="blue", anchor="middle")
    if animated:
        _animate(picture)
        plot = f'x="{LEFT}" y="{TOP - 8}" width="{WIDTH - RIGHT - LEFT + 8}" height="{ground - TOP + 8:.1f}"'
        picture.add(f'<clipPath id="plot"><rect {plot}/></clipPath>')
        picture.add(f'<g clip-path="url(#plot)"><rect class="cover f-page" {plot}/></g>')
    _axes(picture, requests, places)
    stop = next(at for at, request in enumerate(requests) if request.held > WINDOW)
    with picture.group("first"):
        _stop(picture, requests[stop].turn, held[stop])
    with picture.group("last"):
        _held(picture, requests[-1].held, held[-1])
        _sent(picture, requests[-1].sent, len(compactions), sent[-1])
    return picture.svg()


def _animate(picture: Picture) -> None:
    """Reveal the lines from left to right, and show each label when its line arrives there."""
    move = f"transform:translateX({WIDTH}px)"
    picture.style(f"@keyframes uncover{{0%{{transform:none}}66%,100%{{{move}}}}}")
    picture.style(f".cover{{animation:uncover {SECONDS}s linear infinite}}")
    for name, share in (("first", 18), ("last", 47)):
        picture.style(f"@keyframes {name}{{0%,{share}%{{opacity:0}}{share + 3}%,100%{{opacity:1}}}}")
        picture.style(f".{name}{{animation:{name} {SECONDS}s linear infinite}}")
    picture.style("@media (prefers-reduced-motion:reduce){.cover{display:none}.first,.last{animation:none}}")


def _axes(picture: Picture, requests: list[Request], places: list[float]) -> None:
    words = (
        f"A conversation of {requests[-1].turn} turns in a context window of {number(WINDOW)} tokens",
        f"{requests[-1].turn} 轮对话，上下文窗口只有 {number(WINDOW)} token",
    )
    picture.text((24, 40), words, size=21, bold=True)
    picture.text((LEFT - 12, TOP - 6), "tokens", colour="muted", anchor="end")
    for tokens in range(0, TALLEST, 10_000):
        top = _height(tokens)
        picture.line((LEFT, top), (WIDTH - RIGHT, top), "grid")
        picture.text((LEFT - 12, top + 5), f"{tokens // 1_000}k" if tokens else "0", colour="muted", anchor="end")
    seen = 0
    for left, request in zip(places, requests, strict=True):
        if request.turn != seen and (request.turn == 1 or request.turn % 4 == 0):
            words = (f"turn {request.turn}", f"第 {request.turn} 轮")
            picture.text((left, HEIGHT - BOTTOM + 26), words, colour="muted", anchor="middle")
        seen = request.turn
    top = _height(WINDOW)
    picture.line((LEFT, top), (WIDTH - RIGHT, top), "red", width=2, dashes="7 5")
    words = (f"context window: {number(WINDOW)} tokens", f"上下文窗口：{number(WINDOW)} token")
    picture.text((LEFT + 10, top - 9), words, colour="red", size=16)


def _held(picture: Picture, tokens: int, place: tuple[float, float]) -> None:
    """Label the line of the whole conversation."""
    left, top = place[0] + 18, place[1] + 4
    picture.dot(place, 6.5, "orange")
    picture.text((left, top), number(tokens), size=22, colour="orange", bold=True)
    picture.text((left, top + 22), ("tokens in the conversation,", "token：整个对话，"), colour="orange")
    picture.text((left, top + 42), ("all of them stored", "全部保存"), colour="orange")


def _sent(picture: Picture, tokens: int, compactions: int, place: tuple[float, float]) -> None:
    """Label the line of the sent tokens."""
    left, top = place[0] + 18, place[1] + 2
    picture.text((left, top - 104), ("Turn 28 asks for five things", "第 28 轮要用到前面说过的"))
    picture.text((left, top - 84), ("said earlier. All five are", "五件事。五件都在这个"))
    picture.text((left, top - 64), ("in this request:", "请求里："))
    picture.dot(place, 6.5, "blue")
    picture.text((left, top), number(tokens), size=22, colour="blue", bold=True)
    picture.text((left, top + 22), ("tokens in the last request,", "token：最后一个请求，"), colour="blue")
    words = (f"after {compactions} compactions", f"此前压缩了 {compactions} 次")
    picture.text((left, top + 42), words, colour="blue")


def _stop(picture: Picture, turn: int, place: tuple[float, float]) -> None:
    """Label the point at which a program that sends everything has to stop."""
    top = place[1] - 118
    picture.line((place[0], place[1] - 9), (place[0], top + 8), "red", width=1.5)
    picture.dot(place, 6.5, "red")
    words = (f"Turn {turn}: the window is full.", f"第 {turn} 轮：窗口已满。")
    picture.text((place[0] - 4, top - 20), words, size=16, colour="red", bold=True, anchor="middle")
    words = ("A program that sends everything stops here.", "把全部消息都发出去的程序到此为止。")
    picture.text((place[0] - 4, top), words, size=16, colour="red", anchor="middle")


def _across(at: int, count: int) -> float:
    return LEFT + 12 + at * (WIDTH - LEFT - RIGHT - 24) / (count - 1)


def _height(tokens: int) -> float:
    return HEIGHT - BOTTOM - tokens * (HEIGHT - TOP - BOTTOM) / TALLEST


# --- bars -------------------------------------------------------------------------------------------

BARS_WIDTH, NAMES, COLUMN, BAR, ROW = 1_000, 330, 220, 128, 30  # pixels
MOST_OVER = 5  # percent of requests over the budget; above it the bar is hatched: not comparable
DEAREST = 1.6  # the cost at the right end of a cost bar

TALK: dict[str, Words] = {
    "auto": "everlong",
    "user-newest": ("the user's messages, newest first", "只留用户消息，从新到旧"),
    "bm25-minilm": "BM25 + MiniLM",
    "bm25": "BM25",
    "newest": ("newest first", "从新到旧"),
}
WORK: dict[str, Words] = {
    "auto": "everlong",
    "half-bm25": ("half newest, half BM25", "一半最新，一半 BM25"),
    "newest": ("newest first", "从新到旧"),
}
POLICIES: dict[str, Words] = {
    "auto": "everlong",
    "auto-trim": ("everlong without summaries", "everlong，不写摘要"),
    "drop@.95/.3": ("drop old rounds, down to 30 %", "丢弃旧轮次，降到 30 %"),
    "drop@.95/.5": ("drop old rounds, down to 50 %", "丢弃旧轮次，降到 50 %"),
    "trim@.85/.5": ("trim old tool results, down to 50 %", "裁剪旧工具结果，降到 50 %"),
    "summary@.95": ("summary and the newest 10k", "摘要 + 最新 10k"),
    "summary-capped@.95": ("the same, tool results capped", "同上，限制工具结果"),
    "trim-each@.85/.5": ("trim each tool result when it is old", "工具结果一旧就裁剪"),
    "trim@.85/.8, a narrow band": ("trim old tool results, down to 80 %", "裁剪旧工具结果，降到 80 %"),
    "clear@.5": ("clear old tool results in each request", "每个请求都清空旧工具结果"),
    "slide": ("sliding window", "滑动窗口"),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of the longest bar, its figure as in the table, and whether it is hatched."""

    share: float
    figure: str
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A strategy and its bars."""

    name: Words
    bars: tuple[Bar, ...]
    ours: bool = False


def table(page: str, mark: str) -> dict[str, list[str]]:
    """Return the first table after a mark in a page: the first cell of each row -> its other cells."""
    text = (ROOT / "docs" / "lab" / page).read_text(encoding="utf-8")
    lines = iter(text.partition(f"<!-- {mark} -->\n")[2].splitlines())
    for line in lines:
        if line.startswith("| --- "):
            break
    rows = dict[str, list[str]]()
    for line in takewhile(lambda line: line.startswith("|"), lines):
        name, *cells = (cell.strip() for cell in line.replace("*", "").replace("`", "").strip("|").split("|"))
        rows[name] = cells
    return rows


def cases(mark: str) -> str:
    """Return a table's number of cases, from the line with its command."""
    text = (ROOT / "docs" / "lab" / "evidence.md").read_text(encoding="utf-8")
    return number(int(re.findall(r": (\d+) cases", text.partition(f"<!-- {mark} -->\n")[2])[0]))


def survival(marks: Sequence[str], names: dict[str, Words]) -> list[Row]:
    """Return rows of tables whose cells begin with a share in percent."""
    rows = {name: cells for mark in marks for name, cells in table("evidence.md", mark).items()}
    figures = {name: [cell.split()[0] for cell in rows[name][:3]] for name in names}
    return [
        Row(words, tuple(Bar(float(figure) / 100, f"{figure} %") for figure in figures[name]), name == "auto")
        for name, words in names.items()
    ]


def libraries() -> list[Row]:
    """Return the rows of other libraries; the number in brackets is the percentage of requests over the budget."""
    rows = []
    for name, cells in table("evidence.md", "work-libraries").items():
        pairs = [(cell.split()[0], int(cell.split()[1].strip("()"))) for cell in cells]
        bars = tuple(
            Bar(int(share) / 100, f"{share} %" + (f" ({over})" if over else ""), over > MOST_OVER)
            for share, over in pairs
        )
        rows.append(Row(name.replace(",", ""), bars))
    return rows


def costs() -> list[Row]:
    """Return each policy's cost at 64k and the share that it keeps word for word, in brackets if names count too."""
    rows, figures = [], table("replay-figures.md", "figures")
    for name, words in POLICIES.items():
        cost, _, kept = figures[name][0].partition(", ")
        exact = re.findall(r"\d+", kept.partition(";")[0])[-1]
        bars = (Bar(float(cost) / DEAREST, cost), Bar(int(exact) / 100, f"{exact} %"))
        rows.append(Row(words, bars, name.startswith("auto")))
    return rows


def survives(language: int) -> str:
    """Draw what survives a compaction, in long chats and in work with tools."""
    talk = survival(("assistant-confirming", "assistant-libraries"), TALK)
    work = [*survival(("work",), WORK), *libraries()]
    height = 224 + ROW * (len(talk) + len(work))
    title = ("What is still there when the model needs it", "模型需要的内容还在吗")
    picture = Picture(BARS_WIDTH, height, title, language=language)
    _hatch(picture)
    picture.text((24, 40), title, size=21, bold=True)
    for column, budget in enumerate(("8k", "16k", "32k")):
        words = (f"budget {budget} tokens", f"预算 {budget} token")
        picture.text((NAMES + column * COLUMN, 72), words, colour="muted")
    questions, strings = cases("assistant-confirming"), cases("work")
    words = (
        f"Long chats: are all messages that answer a later question still sent? ({questions} questions)",
        f"长对话：回答后来的问题所需的消息，是否全都还在？（{questions} 个问题）",
    )
    top = _rows(picture, 104, words, talk)
    words = (
        f"Work with tools: is the string that the agent uses next still sent? ({strings} strings)",
        f"工具任务：Agent 接下来要用的字符串，是否还在？（{strings} 个字符串）",
    )
    top = _rows(picture, top + 24, words, work)
    picture.box((24, top + 6), (26, 14), "grey", opacity=0.35)
    picture.add(f'<rect x="24" y="{top + 6:.0f}" width="26" height="14" rx="3" fill="url(#hatch)"/>')
    words = (
        "In brackets: percent of requests that were larger than the budget they were given.",
        "括号内：有百分之几的请求超出了给定的预算。",
    )
    picture.text((60, top + 18), words, colour="muted", size=14)
    words = (
        "Other libraries: every fourth string, measured earlier.",
        "其他库：每四个字符串测一个，测得较早。",
    )
    picture.text((60, top + 38), words, colour="muted", size=14)
    return picture.svg()


def cost(language: int) -> str:
    """Draw the cost of each policy and what it keeps."""
    rows = costs()
    title = ("What it costs and what it keeps", "花费多少，保留多少")
    picture = Picture(BARS_WIDTH, 150 + ROW * len(rows), title, language=language)
    picture.text((24, 40), title, size=21, bold=True)
    words = (
        "42 long agent sessions, a window of 64,000 tokens, Anthropic's prices with prompt cache",
        "42 个长 Agent 会话，窗口 64,000 token，按 Anthropic 价格计，含提示缓存",
    )
    picture.text((24, 66), words, colour="muted")
    bar = 205
    picture.text((NAMES, 104), ("cost (sending everything = 1)", "费用（全部发送 = 1）"), bold=True)
    picture.text((NAMES + 340, 104), ("needed later and still there", "后来用到、原文还在"), bold=True)
    top = _rows(picture, 96, "", rows, column=340, bar=bar)
    whole = NAMES + bar / DEAREST
    picture.line((whole, 114), (whole, top - 4), "red", width=1.5, dashes="5 4")
    words = ("1 = sending everything to a model whose window is large enough", "1 = 全部发送给窗口足够大的模型")
    picture.text((NAMES, top + 16), words, colour="red", size=14)
    return picture.svg()


def _rows(
    picture: Picture, top: float, title: Words, rows: Sequence[Row], *, column: float = COLUMN, bar: float = BAR
) -> float:
    """Draw a line of text and the rows below it; return where they end."""
    picture.text((24, top), title, size=16, bold=True)
    top += 16
    for row in rows:
        colour = "blue" if row.ours else "grey"
        picture.text(
            (NAMES - 16, top + 19), row.name, colour="blue" if row.ours else "ink", anchor="end", bold=row.ours
        )
        for place, value in enumerate(row.bars):
            left = NAMES + place * column
            picture.box((left, top + 4), (bar, ROW - 10), "grid")
            length = max(2.0, bar * value.share)
            picture.box((left, top + 4), (length, ROW - 10), colour, opacity=0.35 if value.hatched else 1)
            if value.hatched:
                where = f'x="{left:.1f}" y="{top + 4:.1f}" width="{length:.1f}" height="{ROW - 10}" rx="3"'
                picture.add(f'<rect {where} fill="url(#hatch)"/>')
            ink = "blue" if row.ours else "muted" if value.hatched else "ink"
            picture.text((left + bar + 8, top + 19), value.figure, colour=ink, bold=row.ours)
        top += ROW
    return top


def _hatch(picture: Picture) -> None:
    lines = '<path class="s-grey" d="M0 6L6 0" stroke-width="1.5"/>'
    picture.add(f'<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse">{lines}</pattern>')


def main() -> int:
    """Write the pictures, or say whether they are up to date."""
    return update(pictures(), check="--check" in sys.argv[1:])


def pictures() -> Iterator[tuple[str, str]]:
    """Yield every picture with the name of its file."""
    requests = played()
    for language in LANGUAGES:
        yield file_name("outgrow", language), outgrow(requests, language)
        yield file_name("outgrow-animated", language), outgrow(requests, language, animated=True)
        yield file_name("survives", language), survives(language)
        yield file_name("cost", language), cost(language)


if __name__ == "__main__":
    sys.exit(main())
