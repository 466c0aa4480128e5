"""Draws the pictures of docs/concepts, in English and Chinese.

python scripts/draw_concepts.py writes docs/images/concept-*.svg python scripts/draw_concepts.py --check exits 1 if a
picture is out of date

The figures come from the sample conversation, played by the engine in a window of 16,000 tokens, as in `everlong demo`.
"""

import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from everlong.cli.runs.demo import THREAD, Play
from everlong.cli.terminal.files import sample_document
from everlong.compress import Preset
from everlong.core import History, Message, Protection, protected
from everlong.engine import Call, Engine, Settings
from everlong.llm import ReceivedRequest
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from picture import LANGUAGES, Picture, Words, file_name, number, update

WINDOW = 16_000  # tokens, as in `everlong demo`
WIDTH, LEFT = 1_000, 40  # pixels
ACROSS = WIDTH - 2 * LEFT
MODEL = "gpt-4o"


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar: its tokens, its colour and its name."""

    tokens: int
    colour: str
    name: Words


def main() -> int:
    """Write the pictures, or say whether they are up to date."""
    return update(pictures(), check="--check" in sys.argv[1:])


def pictures() -> Iterator[tuple[str, str]]:
    """Yield every picture with the name of its file."""
    play = played("auto")
    sliding = played(Preset(name="newest", compressor=newest))
    drawn: tuple[tuple[str, Callable[[int], str]], ...] = (
        ("concept-window", window),
        ("concept-compaction", lambda language: compaction(play, sliding, language)),
        ("concept-survives", lambda language: survives(play, language)),
        ("concept-recall", recall),
        ("concept-summaries", summaries),
        ("concept-laws", laws),
        ("concept-counting", counting),
    )
    for name, draw in drawn:
        for language in LANGUAGES:
            yield file_name(name, language), draw(language)


def played(preset: str | Preset) -> Play:
    """Play the sample conversation under a preset."""
    threads = MemoryThreads()
    play = Play(sample_document(), threads, WINDOW)
    play.settings = Settings(mode="trim", preset=preset)
    play.engine = Engine(threads, settings=play.settings)

    async def play_all() -> None:
        async for _ in play.turns():
            pass

    asyncio.run(play_all())
    return play


def newest(history: Sequence[Message], target: int) -> list[Message]:
    """Return the newest messages that fit, like a compressor that trims every request."""
    counter, kept, total = Counter(MODEL), list[Message](), 0
    for message in reversed(history):
        total += counter.message(message)
        if total > target:
            break
        kept.insert(0, message)
    return kept


def bar(picture: Picture, top: float, height: float, segments: Sequence[Segment], scale: float) -> list[float]:
    """Draw segments next to each other; return where each begins, and where the last one ends."""
    places = [float(LEFT)]
    for segment in segments:
        length = segment.tokens * scale
        picture.box((places[-1], top), (max(length - 1.5, 1), height), segment.colour, opacity=0.85)
        places.append(places[-1] + length)
    return places


# --- window and budget ----------------------------------------------------------------------------


def window(language: int) -> str:
    """Draw the parts of a window: what a call takes before the first message, and what remains."""
    document, threads = sample_document(), MemoryThreads()
    threads.create(THREAD)
    threads.append(THREAD, document.messages)
    engine = Engine(threads, settings=Settings(window=WINDOW, mode="trim")).blocking
    parts = engine.prepare(THREAD, Call(model=MODEL, tools=document.tools)).budget
    why, counter = protected(document.messages), Counter(MODEL)
    system = sum(counter.message(document.messages[at]) for at, reason in why.items() if reason is Protection.SYSTEM)
    stays = parts.fixed - system
    title = (f"A context window of {number(WINDOW)} tokens", f"{number(WINDOW)} token 的上下文窗口")
    picture = Picture(WIDTH, 372, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    segments = (
        Segment(parts.tools + system, "purple", ("prompt overhead", "固定开销")),
        Segment(stays, "orange", ("task, last question", "任务、最后一问")),
        Segment(parts.movable, "blue", ("movable part", "可压缩部分")),
        Segment(parts.margin, "grey", ("margin", "余量")),
        Segment(parts.reply, "green", ("reserve", "为回答预留")),
    )
    scale, top, height = ACROSS / WINDOW, 142, 62
    places = bar(picture, top, height, segments, scale)
    _window_labels(picture, segments, places, top + height)
    movable = places[2]
    for share, words, up in (
        (parts.target, ("target", "目标"), 14),
        (parts.threshold, ("threshold", "阈值"), 14),
    ):
        left = movable + parts.movable * share * scale
        picture.line((left, top - 10), (left, top + height), "red", width=2)
        figure = f"{picture.words(words)}: {share:.0%}" if language == 0 else f"{words[1]}：{share:.0%}"
        picture.text((left, top - 10 - up + 6), figure, colour="red", anchor="middle", size=15)
    budget = stays + parts.movable
    words = (f"budget for messages: {number(budget)} tokens", f"消息预算：{number(budget)} token")
    _brace(picture, places[1], places[3], 92, words)
    arrow = top + height + 48
    start, end = movable + parts.movable * parts.threshold * scale, movable + parts.movable * parts.target * scale
    picture.arrow((start, arrow), (end, arrow), "red")
    words = ("a compaction goes from the threshold to the target", "压缩：从阈值降到目标")
    picture.text((start, arrow + 22), words, colour="red", anchor="end", size=14)
    return picture.svg()


def _window_labels(picture: Picture, segments: Sequence[Segment], places: list[float], top: float) -> None:
    """Label the segments: a wide one centred below it, a narrow one at a separate depth, with a line to it."""
    depths = (140, 112, 24, 54, 24)
    for segment, start, end, depth in zip(segments, places, places[1:], depths, strict=False):
        middle = (start + end) / 2
        words = f"{picture.words(segment.name)} {number(segment.tokens)}"
        narrow = end - start < 90
        anchor = "start" if narrow else "middle"
        if narrow:
            picture.line((middle, top + 2), (middle, top + depth - 14), segment.colour, width=1.5)
            middle -= 2
        if end > WIDTH - LEFT - 1:
            middle, anchor = end, "end"
        colour = "muted" if segment.colour == "grey" else segment.colour
        picture.text((middle, top + depth), words, colour=colour, anchor=anchor, bold=True)


def _brace(picture: Picture, start: float, end: float, top: float, words: Words) -> None:
    """Draw a bracket with a name over a part of a bar."""
    picture.line((start, top), (end - 2, top), "ink", width=1.5)
    for left in (start, end - 2):
        picture.line((left, top), (left, top + 9), "ink", width=1.5)
    picture.text(((start + end) / 2, top - 9), words, anchor="middle", bold=True)


# --- compaction and prefix ------------------------------------------------------------------------

FIRST, LAST = 15, 45  # requests that are drawn, from 1
COMPACTED = 0.8  # share of the previous request; a smaller request was compacted, a trim removes less


def compaction(play: Play, sliding: Play, language: int) -> str:
    """Draw how much of each request the previous one already sent: with compactions, and with a trim per request."""
    title = (
        f"Requests {FIRST} to {LAST} of the same conversation",
        f"同一对话的第 {FIRST} 到 {LAST} 个请求",
    )
    picture = Picture(WIDTH, 560, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    _legend(
        picture,
        72,
        (
            ("blue", 0.3, ("same bytes as before: in the prompt cache", "与上一个请求相同：命中提示缓存")),
            ("blue", 1, ("new bytes: paid in full", "新的内容：全价计费")),
            ("red", 1, ("compaction", "压缩")),
        ),
    )
    words = ("Everlong: between two compactions a request only grows", "Everlong：两次压缩之间，请求只增不改")
    _requests(picture, play.model.requests, 108, words)
    words = (
        "A trim with each request: the beginning changes, and the cache with it",
        "每个请求都裁剪：开头变了，缓存随之失效",
    )
    _requests(picture, sliding.model.requests, 336, words)
    return picture.svg()


def _requests(picture: Picture, requests: Sequence[ReceivedRequest], top: float, title: Words) -> None:
    cached = sum(request.cached for request in requests) / sum(request.tokens for request in requests)
    share = (f"{cached:.0%} of all tokens cached", f"全部 token 的 {cached:.0%} 命中缓存")
    picture.text((LEFT, top + 16), title, bold=True)
    picture.text((WIDTH - LEFT, top + 16), share, anchor="end", bold=True, colour="blue")
    ground, tall = top + 190, 150
    scale = tall / WINDOW
    picture.line((LEFT, ground - tall), (WIDTH - LEFT, ground - tall), "red", dashes="6 4")
    picture.text((WIDTH - LEFT, ground - tall - 6), ("window", "窗口"), colour="red", anchor="end", size=14)
    shown = requests[FIRST - 1 : LAST]
    pitch = ACROSS / len(shown)
    for at, request in enumerate(shown):
        left, width = LEFT + at * pitch, pitch - 5
        old, new = request.cached * scale, (request.tokens - request.cached) * scale
        picture.box((left, ground - old), (width, old), "blue", opacity=0.3, radius=1)
        picture.box((left, ground - old - new), (width, new), "blue", radius=1)
        if at and request.tokens < COMPACTED * shown[at - 1].tokens:
            picture.dot((left + width / 2, ground - old - new - 12), 6, "red")
    picture.line((LEFT, ground), (WIDTH - LEFT, ground), "edge")


def _legend(picture: Picture, top: float, rows: Sequence[tuple[str, float, Words]]) -> None:
    left = float(LEFT)
    for colour, opacity, words in rows:
        picture.box((left, top - 12), (22, 14), colour, opacity=opacity)
        picture.text((left + 30, top), words, colour="muted")
        left += 30 + 8.2 * len(picture.words(words)) * (2 if picture.language else 1) + 24


# --- what survives --------------------------------------------------------------------------------

DEPTHS = (3, 2, 1, 0, 0, 1, 2)  # lines of text between the bar and the name of each part
QUOTED = re.compile(r"^\[(\d+) ", re.MULTILINE)  # an excerpt begins with the number of its message


def survives(play: Play, language: int) -> str:
    """Draw the conversation, and the parts of it that the last request contains."""
    counter, last = play.model.counter, play.model.requests[-1]
    stored = [(row.order, row.entry) for row in play.threads.read(THREAD) if isinstance(row.entry, Message)][:-1]
    quoted = {int(order) for message in last.messages for order in QUOTED.findall(message.text)}
    tools = counter.tools(play.document.tools)
    whole = tools + sum(counter.message(message) for _, message in stored)
    title = ("What the last request has of the conversation", "最后一个请求保留了对话中的哪些内容")
    picture = Picture(WIDTH, 470, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    words = (
        f"The conversation: {number(whole)} tokens in {len(stored)} messages, oldest first",
        f"整个对话：{number(whole)} token，{len(stored)} 条消息，由旧到新",
    )
    picture.text((LEFT, 82), words)
    scale, left = ACROSS / whole, LEFT + tools * ACROSS / whole
    picture.box((LEFT, 96), (tools * scale, 54), "purple", radius=0)
    whole_orders = sent_whole(stored, last.messages)
    for order, message in stored:
        length = counter.message(message) * scale
        colour = "blue" if order in whole_orders else "yellow" if order in quoted else "grid"
        picture.box((left, 96), (max(length - 0.4, 0.6), 54), colour, radius=0)
        left += length
    _keys(picture, 178)
    width = last.tokens * scale
    start = WIDTH / 2 - width / 2
    picture.box((start, 208), (width, 26), "blue", opacity=0.35)
    words = (f"the request: {number(last.tokens)} tokens", f"请求：{number(last.tokens)} token")
    picture.text((start + width + 14, 227), words, bold=True)
    picture.area([(start, 236), (start + width, 236), (WIDTH - LEFT, 288), (LEFT, 288)], "blue", opacity=0.08)
    segments = parts_of(last.messages, tools, counter)
    places = bar(picture, 288, 58, segments, ACROSS / last.tokens)
    for at, (segment, begin, end) in enumerate(zip(segments, places, places[1:], strict=False)):
        middle, depth = (begin + end) / 2, 372 + 24 * DEPTHS[at]
        picture.line((middle, 348), (middle, depth - 14), segment.colour)
        anchor = "start" if middle < WIDTH / 3 else "end" if middle > WIDTH * 2 / 3 else "middle"
        text = f"{picture.words(segment.name)} {number(segment.tokens)}"
        picture.text((middle + (-3 if anchor == "start" else 3 if anchor == "end" else 0), depth), text, anchor=anchor)
    return picture.svg()


def sent_whole(stored: Sequence[tuple[int, Message]], sent: History) -> set[int]:
    """Return the places of the messages that are sent unchanged; of two equal ones, the newer."""
    left, found = [id_of(message) for message in sent], set[int]()
    for order, message in reversed(stored):
        if id_of(message) in left:
            left.remove(id_of(message))
            found.add(order)
    return found


def id_of(message: Message) -> tuple[str, str, tuple[str, ...]]:
    """Return what distinguishes a message from others, without the ids of its calls."""
    results = tuple(result.text for result in message.results)
    return message.role.value, message.text, results + tuple(call.arguments for call in message.calls)


def parts_of(messages: History, tools: int, counter: Counter) -> list[Segment]:
    """Return the parts of the last request, in order."""
    size = counter.message
    blocks = [at for at, message in enumerate(messages) if message.text.startswith("<background-")]
    first, recalled = blocks[0], blocks[-1]
    steps = sum(size(message) for message in messages[first + 1 : recalled])
    return [
        Segment(tools + size(messages[0]), "purple", ("tools and system text", "工具与系统提示")),
        Segment(size(messages[1]), "orange", ("task", "任务")),
        Segment(size(messages[2]), "red", ("standing wishes", "长期要求")),
        Segment(size(messages[first]), "yellow", ("excerpts and names", "摘录与名称")),
        Segment(steps, "blue", ("newest steps, whole", "最近几步，原样")),
        Segment(size(messages[recalled]), "yellow", ("recalled for the question", "为本问题召回")),
        Segment(size(messages[-1]), "green", ("last question", "最后一个问题")),
    ]


def _keys(picture: Picture, top: float) -> None:
    rows: tuple[tuple[str, float, Words], ...] = (
        ("blue", 1, ("sent word for word", "原样发送")),
        ("yellow", 1, ("sent as an excerpt", "摘录发送")),
        ("grid", 1, ("not sent: behind a reference, can be recalled", "不发送：保留引用，可召回")),
    )
    _legend(picture, top, rows)


# --- charts of boxes ------------------------------------------------------------------------------


def card(
    picture: Picture, place: tuple[float, float], size: tuple[float, float], colour: str, lines: Sequence[Words]
) -> None:
    """Draw a box with a title and lines below it."""
    picture.box(place, size, colour, opacity=0.12, radius=8, edge=colour)
    picture.text((place[0] + 16, place[1] + 28), lines[0], bold=True, size=16)
    for at, words in enumerate(lines[1:]):
        picture.text((place[0] + 16, place[1] + 54 + 22 * at), words, colour="muted")


def recall(language: int) -> str:
    """Draw the four ways back to content that left the request."""
    title = ("Four ways back to what left the request", "离开请求的内容，有四条路回来")
    picture = Picture(WIDTH, 410, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    stored: list[Words] = [
        ("The thread", "对话"),
        ("Every message as it", "每条消息都原样保存，"),
        ("was said. Nothing in it", "永不修改。"),
        ("ever changes.", ""),
        "",
        ("A reference is a hash", "引用就是原文的哈希。"),
        ("of the original.", ""),
    ]
    card(picture, (LEFT, 70), (220, 310), "orange", stored)
    sent: list[Words] = [
        ("The request", "请求"),
        ("system text, task,", "系统提示、任务、"),
        ("excerpts with references,", "带引用的摘录、"),
        ("newest steps, question", "最近几步、问题"),
    ]
    card(picture, (726, 70), (234, 222), "blue", sent)
    card(picture, (726, 306), (234, 74), "green", [("Your code", "你的代码")])
    ways: tuple[tuple[Words, Words], ...] = (
        (("by itself", "自动"), ("the question needs it: added once as background", "问题要用到：作为背景补充一次")),
        (("the model calls recall", "模型调用 recall"), ("by a reference or in a few words", "给出引用，或几个词")),
        (("undo", "撤销"), ("the compaction is withdrawn", "撤回这次压缩")),
        (("engine.recall, fitted.original", "engine.recall、fitted.original"), ("the original bytes", "原始字节")),
    )
    for at, (name, words) in enumerate(ways):
        top = 100 + 74 * at
        picture.text((492, top), name, anchor="middle", bold=True)
        picture.text((492, top + 20), words, anchor="middle", colour="muted", size=14.5)
        picture.arrow((272, top + 31), (714, top + 31), "blue" if at < len(ways) - 1 else "green")
    return picture.svg()


def summaries(language: int) -> str:
    """Draw how a summary is made."""
    title = ("A summary is written beside the conversation", "摘要在对话之外写成")
    picture = Picture(WIDTH, 370, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    top, height, width = 74, 104, 278
    boxes: tuple[tuple[str, list[Words]], ...] = (
        (
            "blue",
            [
                ("1  The threshold is near", "1  接近阈值"),
                ("The conversation goes on.", "对话照常进行，"),
                ("Nothing waits for the summary.", "不等摘要。"),
            ],
        ),
        (
            "purple",
            [
                ("2  A model writes", "2  模型来写"),
                ("your choice, else a fast one of", "你选的模型，或同一来源的"),
                ("the same source, else its own", "快速模型，或对话自己的模型"),
            ],
        ),
        (
            "red",
            [
                ("3  Code audits it", "3  代码审查"),
                ("inventions, instructions,", "编造、夹带指令、拒答、"),
                ("refusals, bloat: rejected", "比原文还长：一律不收"),
            ],
        ),
    )
    for at, (colour, lines) in enumerate(boxes):
        left = LEFT + at * (width + 43)
        card(picture, (left, top), (width, height), colour, lines)
        if at:
            picture.arrow((left - 38, top + height / 2), (left - 6, top + height / 2), "ink")
    below = top + height + 60
    picture.arrow((LEFT + 2.5 * width + 86, top + height + 6), (LEFT + 2.5 * width + 86, below - 6), "green")
    words = ("passed", "通过")
    picture.text((LEFT + 2.5 * width + 100, top + height + 38), words, colour="green")
    halves: list[Words] = [
        ("4  The summary has two halves", "4  摘要分两半"),
        (
            "facts copied by code: requests, files, figures, failures, open tasks",
            "代码照抄的事实：请求、文件、数字、失败、未完成的任务",
        ),
        ("the model's words: context, decisions, what is done, what is next", "模型写的话：背景、决定、已完成、下一步"),
    ]
    card(picture, (WIDTH - LEFT - 560, below), (560, height), "green", halves)
    fallback: list[Words] = [
        ("No author left?", "没有模型可用了？"),
        ("Then the facts alone,", "就只用事实，"),
        ("and the summary says so.", "并在摘要里注明。"),
    ]
    card(picture, (LEFT, below), (278, height), "grey", fallback)
    picture.arrow((LEFT + 284, below + height / 2), (WIDTH - LEFT - 566, below + height / 2), "ink")
    return picture.svg()


def laws(language: int) -> str:
    """Draw where each law applies on the path of a message."""
    title = ("Where each law applies on the way of a message", "消息走的每一步，各有哪条定律")
    picture = Picture(WIDTH, 380, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    steps: tuple[tuple[str, Words, tuple[tuple[str, Words], ...]], ...] = (
        ("orange", ("store", "存储"), (("1", ("nothing stored changes", "已存内容不变")),)),
        (
            "purple",
            ("compact", "压缩"),
            (
                ("2", ("it fits", "放得下")),
                ("4", ("the protected stays", "受保护的都在")),
                ("5", ("all accounted for", "内容都有去处")),
                ("6", ("the prefix is stable", "前缀稳定")),
                ("7", ("it ends", "必定结束")),
            ),
        ),
        ("green", ("repair", "修复"), (("3", ("it is valid", "格式有效")),)),
        ("blue", ("send", "发送"), (("9", ("it explains itself", "改动都有说明")),)),
    )
    widths, left, top = (252, 222, 161, 210), float(LEFT), 80.0
    for (colour, name, rules), width in zip(steps, widths, strict=True):
        picture.box((left, top), (width, 186), colour, opacity=0.12, radius=8, edge=colour)
        picture.text((left + 16, top + 28), name, bold=True, size=16)
        for at, (law, words) in enumerate(rules):
            _rule(picture, (left + 26, top + 54 + 27 * at), colour, law, words)
        left += width + 25
        if left < WIDTH - LEFT:
            picture.arrow((left - 22, top + 93), (left - 3, top + 93), "ink")
    picture.box((LEFT, 290), (ACROSS, 62), "grey", opacity=0.15, radius=8, edge="grey")
    picture.text((LEFT + 16, 327), ("everywhere", "全程"), bold=True, size=16)
    _rule(picture, (LEFT + 160, 322), "muted", "8", ("same in, same out", "同样输入，同样输出"))
    _rule(picture, (LEFT + 440, 322), "muted", "10", ("a turn costs its news", "每轮开销只随新内容增长"))
    return picture.svg()


def _rule(picture: Picture, place: tuple[float, float], colour: str, law: str, words: Words) -> None:
    picture.dot(place, 12, colour)
    picture.text((place[0], place[1] + 5), law, size=14, anchor="middle", colour="page", bold=True)
    picture.text((place[0] + 22, place[1] + 5), words)


# --- counting -------------------------------------------------------------------------------------

COUNTED = ("gpt-4o", "gpt-4", "deepseek-chat", "gemini-2.5-pro", "qwen3-max", "claude-opus-4-5")
CHARACTERS = 400  # of each text


def texts() -> list[tuple[Words, str]]:
    """Return the beginnings of four texts of the sample conversation."""
    messages = sample_document().messages
    results = [result.text for message in messages for result in message.results]
    chinese = next(message.text for message in messages if message.text.startswith("大家好"))
    python = next(text for text in results if text.startswith('"""') and "\ndef " in text)
    json = next(text for text in results if text.startswith("{"))
    found: list[tuple[Words, str]] = [
        (("English", "英文"), messages[1].text),
        (("Chinese", "中文"), chinese),
        ("Python", python),
        ("JSON", json),
    ]
    return [(name, text[:CHARACTERS]) for name, text in found]


def counting(language: int) -> str:
    """Draw how many tokens the same text has for different models."""
    title = ("The same text in tokens of six models", "同一段文字，六种模型各算多少 token")
    picture = Picture(WIDTH, 446, title, language=language)
    picture.text((LEFT, 44), title, size=19, bold=True)
    words = ("red: characters / 4, the usual rule of thumb", "红线：字符数 ÷ 4，常见的粗略估法")
    picture.text((LEFT, 70), words, colour="red")
    counters, shown = [Counter(model) for model in COUNTED], texts()
    column = ACROSS / len(shown)
    scale = (column - 90) / max(counter.text(text) for counter in counters for _, text in shown)
    for place, (name, text) in enumerate(shown):
        left = LEFT + place * column
        picture.text((left, 108), name, bold=True, size=16)
        length = (f"{len(text)} characters", f"{len(text)} 个字符")
        picture.text((left, 128), length, colour="muted", size=14)
        guess = len(text) / 4 * scale
        for at, (model, counter) in enumerate(zip(COUNTED, counters, strict=True)):
            top, tokens = 142 + 44 * at, counter.text(text)
            picture.text((left, top + 14), model, colour="muted", size=14)
            picture.box((left, top + 20), (tokens * scale, 14), "blue", opacity=1 if counter.exact else 0.45)
            picture.line((left + guess, top + 18), (left + guess, top + 36), "red", width=2)
            figure = str(tokens) if counter.exact else f"≈ {tokens}"
            picture.text((left + max(tokens * scale, guess) + 6, top + 32), figure, size=14)
    words = (
        "pale: estimated, because Claude's vocabulary is not published",
        "浅色：估算值，因为 Claude 的词表没有公开",
    )
    picture.text((LEFT, 426), words, colour="muted")
    return picture.svg()


if __name__ == "__main__":
    sys.exit(main())
