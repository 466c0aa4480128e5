"""Serve the app with scripted models and sample threads, to develop the page and take its pictures.

    python -m everlong.cli.demo_app --port 8334

Needs no key and no network. The words "think", "tools", "ask", "fail", "slow" and "long" in a message choose what the
model does.
"""

import asyncio
import json
import re
import struct
import tempfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import click
import uvicorn

from everlong.agent import AgentConfig
from everlong.cli.app import lone_app
from everlong.cli.chat.sample import sample_turns
from everlong.core import CallId, History, Image, Json, JsonObject, Message, Role, Text, ToolCall, ToolResult, is_framed
from everlong.engine import Threads
from everlong.llm import (
    Answer,
    ArrivalLimits,
    Endpoint,
    GuardedHttp,
    ReceivedRequest,
    Refusal,
    ScriptedServer,
    Step,
    Window,
)
from everlong.store import open_store
from everlong.web import OWNER, AppState, Choices, Guard, Setup, Source, with_choices

__all__ = ["StreamingServer", "demo_model", "main", "picture"]


class StreamingServer(uvicorn.Server):
    """A server for event streams: on a signal it ends them, because pages keep listening, and then stops as usual."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to end."""
        self._end_streams()
        super().handle_exit(sig, frame)


QUESTIONS = 12  # questions in the long thread, so that the usage view has figures
FEED = slice(59, 74)  # messages of the sample: two turns about one ticket
PACE = 0.025  # seconds between two pieces of an answer
SUMMARIES = ("one JSON object", "This summary cannot be used", "JSON 对象", "不能使用")
TITLES = ("title", "标题")
FIGURES = re.compile(r"LB-\d+|\d[\d,]*")
ANSWER = """Here is a short plan. It has three steps:

1. **Measure** where the time goes, before anything is changed.
2. Change *one* thing at a time.
3. Write down what you saw.

| part | before | after |
| --- | ---: | ---: |
| search | 840 ms | 120 ms |
| checkout | 310 ms | 290 ms |

```python
def slow_pages(log: list[Visit], limit: float = 0.5) -> list[str]:
    \"\"\"The pages that take longer than the limit.\"\"\"
    return sorted({visit.path for visit in log if visit.seconds > limit})
```

> Measure again after every change.

Shall I begin with `search`?"""
STATE = """All tickets but one are live and closed since Thursday night:

| ticket | about | state |
| --- | --- | --- |
| LB-118 | negative stock | closed |
| LB-121 | discounted prices | closed |
| LB-127 | shelf labels | closed |
| LB-130 | slow title search | closed |
| LB-133 | refunds for the trial | closed |
| LB-124 | supplier feed | **open**, until 18 March |

Still to do:

1. Riverside counts its last two negative levels.
2. Reprint the shelf labels with the new member prices.
3. Paper Crane sends three correct ISBNs for LB-124."""
RULE = """The rule of Wednesday holds, in all four shops and on the web (LB-121):

1. A discounted price goes **down to the whole jiao**, per copy, then times the copies.
2. **Consignment books** stay exact to the fen.
3. Without a discount, the list price stands.

```python
def unit_price(article: Article, off: int) -> int:
    \"\"\"The price of one copy in fen.\"\"\"
    if not off:
        return article.list_fen
    exact = article.list_fen * (FULL - off)  # in fen times FULL
    if article.consignment:
        return (exact + FULL // 2) // FULL
    return exact // (FULL * JIAO) * JIAO
```

The trial at Harbour Street is over, and its setting is gone."""
#: The model's answers to questions with these words; any other question gets the plan.
ANSWERS = (
    ("where were we", STATE),
    ("discount", RULE),
    ("order", "It was sent on day 12, with 5 books, and has arrived."),
)
CHINESE = """好的，我建议分三步：

1. **先测量**，再修改。
2. 每次只改*一处*。
3. 把结果写下来。

```python
慢页面 = [页.路径 for 页 in 日志 if 页.秒 > 0.5]
```

要从搜索页面开始吗？"""
#: The summaries of the bookshop, by language.
SHOP: Mapping[str, JsonObject] = {
    "en": {
        "context": "Robin runs the inventory service of Lantern Books, and asks for small edits and green tests.",
        "decisions": [
            "LB-121: a discounted price goes down to the whole jiao, per copy; consignment books stay exact",
            "LB-130: a table of title pieces instead of the read replica for ¥1,180 a quarter",
            "LB-124: wrong check digits stay in quarantine; nothing computes a digit",
        ],
        "constraints": [
            "Never touch the orders table directly",
            "Money is integers in fen, everywhere",
            "Green tests before something counts as done",
        ],
        "open_questions": ["LB-124: Paper Crane answers by Wednesday, 18 March"],
        "file_changes": [],
        "done": ["LB-118, LB-121, LB-127, LB-130 and LB-133 are live and closed", "19 refunds are booked"],
        "next": ["Riverside counts its last two negative levels"],
    },
    "zh": {
        "context": "林姐的四家书店在处理库存、标签和会员价，三月的外部支出不超过 ¥3,200。",
        "decisions": [
            "打折价一律向下舍到角，按每一本先舍再乘；寄售书精确到分",
            "不订只读副本，省下 ¥1,180",
            "19 单多收的 ¥7.00 通过 adjust 退款，每人再送一张 ¥10 的代金券",
        ],
        "constraints": ["周六不上线任何东西", "orders 表不能直接改"],
        "open_questions": ["LB-124：等纸鹤 3 月 18 日给出三个正确书号"],
        "file_changes": [],
        "done": ["查清《雾港来信》-2 本的来历", "列出五条负库存"],
        "next": ["收到书号后核对、导入，再关单"],
    },
}


def demo_model(request: ReceivedRequest) -> Step:
    """Answer like a chat model; words in the last user message choose how."""
    last = request.messages[-1] if request.messages else Message(Role.USER, ())
    recent = " ".join(message.text for message in request.messages[-3:])
    if any(sign in recent for sign in SUMMARIES):
        return Answer(text=_summary(request), before=0.5, between=PACE * 4)
    question = next((message.text for message in reversed(request.messages) if message.role is Role.USER), "")
    if (request.max_tokens or 0) == 400 and any(sign in question.lower() for sign in TITLES):
        return Answer(text="A plan for faster pages", before=0.2)
    if last.role is Role.TOOL or not request.tools:
        return _reply(question)
    words = question.lower()
    if "ask" in words:
        calls = (("shell", '{"command": "wc -l README.md"}'),)
        return Answer(text="I will count them with a command.", calls=calls, between=PACE)
    if "tool" in words or "file" in words:
        looks = (("list_files", '{"path": "."}'), ("read_file", '{"path": "README.md"}'))
        return Answer(text="Let me look at the files.", calls=looks, between=PACE)
    return _reply(question)


def _summary(request: ReceivedRequest) -> str:
    """Return a summary: the bookshop's own, or one in the user's words."""
    text = "\n".join(message.text for message in request.messages)
    if "LB-1" in text:
        shop = SHOP["zh" if "JSON 对象" in text else "en"]
        return json.dumps({part: _grounded(items, text) for part, items in shop.items()}, ensure_ascii=False)
    lines = [message.text.strip().splitlines()[0][:90] for message in request.messages if _by_user(message)]
    summary = {
        "context": " … ".join(lines[-2:])[:190],
        "decisions": [],
        "constraints": [],
        "open_questions": lines[-1:],
        "file_changes": [],
        "done": lines[-6:-1],
        "next": [],
    }
    return json.dumps(summary, ensure_ascii=False)


def _grounded(items: Json, text: str) -> Json:
    """Return the items whose tickets and figures occur in the text; a summary with others would be rejected."""
    if not isinstance(items, list):
        return items
    return [item for item in items if all(figure in text for figure in FIGURES.findall(str(item)))]


def _by_user(message: Message) -> bool:
    ours = is_framed(message.text) or any(sign in message.text for sign in SUMMARIES)
    return message.role is Role.USER and bool(message.text.strip()) and not ours


def _reply(message: str) -> Step:
    words = message.lower()
    if "fail" in words:
        return Refusal(400, '{"error": {"message": "The model is not well today."}}')
    chinese = any("\u4e00" <= character <= "\u9fff" for character in message)
    text = CHINESE if chinese else next((answer for part, answer in ANSWERS if part in words), ANSWER)
    thinking = "I look up what was decided last, and whether anything changed it since." if "think" in words else ""
    return Answer(
        text="\n\n".join([text] * 8) if "long" in words else text,
        thinking=thinking,
        before=5.0 if "slow" in words else 0.3,
        between=PACE,
    )


def picture(width: int = 160, height: int = 100) -> str:
    """Return a small PNG of a sunset, in base64."""
    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (255 - y, 90 + y // 2 + x // 4, 60 + x // 2))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    whole = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b64encode(b"\x89PNG\r\n\x1a\n" + whole).decode()


def _text_message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def _pictures() -> Iterator[Message]:
    yield _text_message(Role.SYSTEM, "You are a helpful assistant.")
    yield Message(Role.USER, (Text("What is in this picture?"), Image(data=picture(), media_type="image/png")))
    yield _text_message(Role.ASSISTANT, "A **sunset**: warm at the top, turning blue to the right.")
    yield _text_message(Role.USER, "Read the log and tell me what is slow.")
    call = ToolCall(CallId("c1"), "read_file", '{"path": "logs/visits.log"}')
    yield Message(Role.ASSISTANT, (Text("I will read it."), call))
    log = "\n".join(f"GET /books/{number} 200 {number * 7 % 900} ms" for number in range(1_200))
    yield Message(Role.TOOL, (ToolResult(CallId("c1"), (Text(log),), name="read_file"),))
    yield _text_message(Role.ASSISTANT, ANSWER)
    yield _text_message(Role.USER, "<script>alert('no')</script> and [a link](javascript:alert(1)) do nothing, I hope?")
    yield _text_message(Role.ASSISTANT, "They are shown as words. <img src=x onerror=alert(1)> too.")


def _books() -> Iterator[Message]:
    for question, answer in (
        (
            "Which of our books sold best in March?",
            "*Letters from Fog Harbour*: **41 copies**, mostly at the Old Mill.",
        ),
        ("And which one the least?", "*The Blue Postmark*, with **2 copies**. Riverside has never ordered it again."),
        ("Write a line for the window display.", "> Forty-one readers have come back from the fog. It is your turn."),
    ):
        yield _text_message(Role.USER, question)
        yield _text_message(Role.ASSISTANT, answer)


def _long(messages: int) -> Iterator[Message]:
    for number in range(messages // 2):
        yield _text_message(Role.USER, f"Question {number}: what do we know about order {1_000 + number}?")
        yield _text_message(
            Role.ASSISTANT, f"Order **{1_000 + number}** was sent on day {number % 28 + 1}, {number % 7} books."
        )


def _thread(threads: Threads, name: str, title: str, model: str, messages: History) -> str:
    metadata = with_choices("{}", Choices(model=model))
    threads.create(name, owner=OWNER, title=title, metadata=metadata)
    for at in range(0, len(messages), 500):
        threads.append(name, messages[at : at + 500])
    return name


async def _fill(app: AppState, messages: int) -> None:
    """Add threads in all states: plain, long, compacted, summarised, archived, with an unknown window."""
    threads = app.threads
    long = tuple(_long(messages))
    _thread(threads, "app-long", "Questions about orders", "studio/lantern-16k", long)
    _thread(threads, "app-old", "An old conversation", "studio/lantern-16k", tuple(_long(8)))
    threads.change("app-old", archived=True)
    _thread(threads, "app-unknown", "Books of the month", "mystery/enigma", tuple(_books()))
    _thread(threads, "app-pictures", "Images, files and tools", "studio/lantern-16k", tuple(_pictures()))
    for number in range(QUESTIONS):
        await app.turns.say("app-long", _text_message(Role.USER, f"And order {2_000 + number}?"))
        while app.turns.running("app-long"):
            await asyncio.sleep(0.05)
    english, chinese = sample_turns("en"), sample_turns("zh")
    _thread(threads, "app-feed", "The supplier feed", "studio/lantern-16k", english[FEED])
    for thread, title, turns in (("app-shop-zh", "灯笼书店", chinese), ("app-shop", "Lantern Books", english)):
        _thread(threads, thread, title, "studio/lantern-16k", turns)
        threads.pin(thread, 0)
        await app.compactions.compact(thread, "")
        await app.updates.close()
    asked = _text_message(Role.USER, "Where were we?"), _text_message(Role.ASSISTANT, STATE)
    await app.engine.append("app-shop", asked)


@click.command()
@click.option("--port", default=8_334, help="The port to listen on (default: 8334).")
@click.option("--messages", default=5_000, help="Number of messages in the long thread (default: 5000).")
@click.option("--tools/--no-tools", default=True, help="Let the model use tools, in an empty folder (default: yes).")
@click.option("--empty", is_flag=True, help="Start without a source and a thread, as on the first run.")
@click.option("--password", default="", help="Ask for this password.")
def main(port: int, messages: int, tools: bool, empty: bool, password: str) -> None:
    """Serve the app with scripted models until it is interrupted."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everlong-demo-")))
        workspace = folder / "workspace"
        workspace.mkdir()
        (workspace / "README.md").write_text("# Lantern Books\n\nA small shop.\n", encoding="utf-8")
        threads = stack.enter_context(open_store(str(folder / "threads.db")))
        setup = Setup(
            threads=threads,
            sources=() if empty else tuple(_sources(stack)),
            sources_file=folder / "sources.json",
            config=AgentConfig(workspace=workspace),
        )
        app = AppState(setup)
        config = uvicorn.Config(
            lone_app(app, Guard(password)),
            http=cast(Any, GuardedHttp(ArrivalLimits())),
            ws="none",
            port=port,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=3,
        )
        server = StreamingServer(config, app.end_streams)

        async def serve() -> None:
            serving = asyncio.create_task(server.serve())
            while not server.started and not serving.done():
                await asyncio.sleep(0.02)
            if not empty and server.started:
                await app.change_settings(replace(app.settings, tools=tools))
                await _fill(app, messages)
            click.echo(f"The app is at http://127.0.0.1:{port}", err=True)
            await serving

        asyncio.run(serve())


def _sources(stack: ExitStack) -> Iterator[Source]:
    """Yield three servers: with a medium, a small and an unknown window."""
    for name, model, window in (
        ("studio", "lantern-16k", Window(16_384, told=True)),
        ("pocket", "lantern-6k", Window(6_144, told=True)),
        ("mystery", "enigma", Window()),
    ):
        server = stack.enter_context(ScriptedServer(demo_model, window=window, models=(model,)))
        yield Source(name=name, endpoint=Endpoint(url=server.url), models=(model,))


if __name__ == "__main__":
    main()
