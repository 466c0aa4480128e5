"""The benchmark of freezing: how long `/health` waits while the gateway works on a deliberately heavy request.

Each kind of text is sent as one message of a request, while another client asks `/health` every few milliseconds. A
kind is a text that costs a tokenizer, a pattern or a parser more than its length suggests.
"""

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import quantiles
from threading import Thread
from time import perf_counter, sleep

from everlong.lab.environments import HERE
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.parties import DIRECT, EVERLONG, RunningGateway, run_gateway
from everlong.lab.speed.gateways.processes import cpu_seconds, resident_megabytes
from everlong.lab.speed.gateways.requests import Connection, Refusal
from everlong.lab.speed.tables import Table, figure

__all__ = ["KINDS", "run"]

MEGABYTE = 1_000_000
SIZE, QUICK_SIZE = 28 * MEGABYTE, MEGABYTE // 2
BETWEEN = 0.004  # seconds between two questions
AIM = 0.050  # seconds; nobody should wait longer because of another's request
SETTLING = 25.0  # seconds until free memory has been returned
ALONE = 100  # questions during a light request, to measure the machine itself
SEED = 11

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
POST = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    "authorization: Bearer none\r\ncontent-length: {length}\r\n\r\n"
)
ENGLISH = "The quick brown fox doesn't jump over the lazy dog's fence; it waits, 42 times a day.\n"
HAN = "上下文窗口即将耗尽需要压缩历史消息请检查配置文件中的超时设置是否正确"


def _of(sample: str) -> Callable[[int], str]:
    """Return a function that repeats a sample up to a number of bytes."""
    return lambda size: sample * (size // len(sample.encode()))


def _encoded(size: int) -> str:
    return base64.b64encode(random.Random(SEED).randbytes(size * 3 // 4)).decode()


def _words(size: int) -> str:
    roll = random.Random(SEED)
    words = ["".join(roll.choices("etaoinshrdlu", k=roll.randint(2, 9))) for _ in range(20_000)]
    return " ".join(roll.choices(words, k=size // 6))[:size]


#: Kind of text -> a function that makes this many bytes of it.
KINDS: Mapping[str, Callable[[int], str]] = {
    "English": _of(ENGLISH),
    "words, all different": _words,
    "a": _of("a"),
    "spaces": _of(" "),
    "line ends": _of("\n"),
    "one emoji": _of("😀"),
    "base64": _encoded,
    "digits": _of("7"),
    "combining marks": _of("\u0301"),
    "Han without spaces": _of(HAN),
    "deep JSON": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "JSON of small rows": lambda size: "[" + '{"id": 1, "name": "x", "ok": true},' * (size // 35) + "0]",
    "one line of paths": _of("/usr/lib/python3.11/site-packages/x.py:12 "),
    "backslashes": _of("\\"),
    "quotes": _of('"'),
    "angle brackets": _of("<|"),
}
#: The models for the ways to count: two with their own vocabularies, one that is estimated.
MODELS = ("gpt-4o", "gemini-2.5-pro", "claude-opus-4-5")
#: The place of the text in the request.
PLACES = ("question", "result")


@dataclass(slots=True)
class _Beside:
    """What another client saw meanwhile, in seconds, and the gateway's memory, in MB."""

    waits: list[float]
    answered: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    before: float = 0.0
    peak: float = 0.0


def run(bench: Bench) -> list[Table]:
    """Measure every kind; return nothing if the gateway cannot be started."""
    with run_gateway(bench, DIRECT, HERE) as upstream:
        if upstream is None:
            return []
        with run_gateway(bench, EVERLONG, HERE, upstream.port) as gateway:
            return [] if gateway is None else [_table(bench, gateway)]


def _table(bench: Bench, gateway: RunningGateway) -> Table:
    size = QUICK_SIZE if bench.quick else SIZE
    measured: dict[str, _Beside] = {"nothing": _measure(gateway, _body("hello", MODELS[0], PLACES[0]), ALONE)}
    for kind, make in KINDS.items():
        text = make(size)
        for number, model in enumerate(MODELS):
            title = f"{kind}, {model}"
            measured[title] = _measure(gateway, _body(text, model, PLACES[number % 2]))
            bench.report(f"freezing, {title}: {' '.join(_row(measured[title]))}")
    sleep(0 if bench.quick else SETTLING)
    after = resident_megabytes(gateway.process) or 0.0
    worst = max(max(one.waits) for one in measured.values())
    head = ("", "health p50, ms", "p99", "longest", "request, s", "CPU, s", "before, MB", "peak, MB", "answer")
    notes = (
        f"Memory after all of them: {figure(after)} MB, {figure(gateway.resident or 0.0)} MB at the start.",
        "The first row is the machine without a request: anything above it is caused by the request.",
        f"Aim: nobody waits longer than {AIM * 1e3:g} ms for another's request. "
        f"Longest: {figure(worst * 1e3)} ms, {'met' if worst <= AIM else 'NOT met'}.",
    )
    rows = tuple((title, *_row(one)) for title, one in measured.items())
    data = {title: {"waits": one.waits, "seconds": one.seconds, "peak": one.peak} for title, one in measured.items()}
    return Table(f"Requests of {size / MEGABYTE:g} MB beside others", head, rows, notes, data)


def _row(one: _Beside) -> tuple[str, ...]:
    cuts = quantiles(one.waits, n=100, method="inclusive") if len(one.waits) > 1 else one.waits * 100
    figures = (cuts[49] * 1e3, cuts[98] * 1e3, max(one.waits) * 1e3, one.seconds, one.cpu, one.before, one.peak)
    return (*map(figure, figures), one.answered)


def _body(text: str, model: str, place: str) -> bytes:
    messages: list[dict[str, object]] = [{"role": "user", "content": "What does it say?"}]
    if place == "result":
        call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "c1", "content": text})
    else:
        messages[0]["content"] = text
    return json.dumps({"model": model, "messages": messages}, ensure_ascii=False).encode()


def _measure(gateway: RunningGateway, body: bytes, questions: int = 1) -> _Beside:
    """Send the request, and ask `/health` until it is answered, at least this many times."""
    beside = _Beside([], before=resident_megabytes(gateway.process) or 0.0)
    used = cpu_seconds(gateway.process) or 0.0
    start = perf_counter()
    sender = Thread(target=_send, args=(gateway.port, body, beside))
    sender.start()
    connection = Connection(gateway.port)
    while sender.is_alive() or len(beside.waits) < questions:
        beside.waits.append(connection.ask(HEALTH).whole)
        beside.peak = max(beside.peak, resident_megabytes(gateway.process) or 0.0)
        sleep(BETWEEN)
    connection.close()
    beside.seconds = perf_counter() - start
    beside.cpu = (cpu_seconds(gateway.process) or 0.0) - used
    return beside


def _send(port: int, body: bytes, beside: _Beside) -> None:
    connection = Connection(port)
    try:
        connection.ask(POST.format(length=len(body)).encode() + body)
        beside.answered = "200"
    except Refusal as refusal:
        beside.answered = str(refusal).split(" ")[1][:3] if str(refusal).startswith("HTTP") else "none"
    connection.close()
