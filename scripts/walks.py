"""Counts the modules that a request runs through, and lists the functions in the order they are first entered.

    python scripts/walks.py [--functions] [--json FILE]

A module counts when one of its functions is called or resumed, in any thread of the process; bodies of modules and
classes do not count. Whole conversations of the same kind warm up everything first.

request   the first streamed chat request of a conversation through the gateway, nothing compacted, until the work
          after the answer is done. The upstream is another process and the client a bare socket: they add no module.
turn      the first `converse` call of a thread on a SQLite store with a scripted model, which does not count itself.
summary   one `converse` call after which a summary is due, until the summary is committed.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from everlong import Call, Engine, Settings, Summaries, converse, open_store
from everlong.testing import Answer, ScriptedModel, ScriptedServer, Window

ROOT = Path(__file__).resolve().parent.parent
SCRIPTED = "everlong.llm.scripted"  # left out: the fake model is not part of the walk
FUNCTION = 0x1  # CO_OPTIMIZED: functions have it, bodies of modules and classes do not
QUIET = 0.5  # seconds
CALL = Call(model="gpt-4o", max_tokens=300)
SUMMARY = {
    "context": "The user reports the cargo of each day: barrels of salt.",
    "decisions": [],
    "constraints": [],
    "open_questions": [],
    "file_changes": [],
    "done": ["The barrels of salt were noted."],
    "next": [],
}

#: The functions entered, in order; None while nobody counts.
Walk = dict[str, None]
_walk: Walk | None = None


def _enter(frame: FrameType, event: str, _argument: object) -> None:
    """Record a function that is entered. Set in every thread from its start: Python 3.11 cannot set it later."""
    if event != "call" or _walk is None or not frame.f_code.co_flags & FUNCTION:
        return
    module = frame.f_globals.get("__name__", "")
    if module.startswith("everlong") and not module.startswith(SCRIPTED):
        _walk.setdefault(f"{module}:{frame.f_code.co_qualname}")


@contextmanager
def walking() -> Iterator[Walk]:
    """Collect the functions that are entered in the block."""
    global _walk
    walk: Walk = {}
    _walk = walk
    try:
        yield walk
    finally:
        _walk = None


def request_walk(store: str) -> Walk:
    """Walk a streamed request through the gateway."""
    from tests.gateway.running import RunningGateway  # noqa: PLC0415 - starts threads, so the profiler comes first

    upstream = subprocess.Popen(
        [sys.executable, __file__, "--upstream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert upstream.stdin is not None
    assert upstream.stdout is not None
    try:
        url = upstream.stdout.readline().strip()
        with RunningGateway(upstream=url, store=store, access_log=True) as gateway:
            for conversation in range(3):
                talk = [{"role": "user", "content": f"Question {conversation}? " + "words of it " * 30}]
                with walking() as walk:
                    ask(gateway.port, talk)
                    settle(walk)
        return walk
    finally:
        upstream.stdin.close()
        upstream.wait()


def settle(walk: Walk) -> None:
    """Wait until nothing new is entered: the work after the answer is done."""
    entered = -1
    while entered != len(walk):
        entered = len(walk)
        time.sleep(QUIET)


def serve_upstream() -> None:
    """Run the upstream: print its address, and serve until the input ends."""
    with ScriptedServer(lambda _: Answer(text="answer " * 20), window=Window(100_000, told=True)) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


def ask(port: int, messages: list[dict[str, str]]) -> None:
    """Send one streamed request over a new connection, and read its answer to the end."""
    body = json.dumps({"model": "gpt-4o", "stream": True, "messages": messages}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer k\r\n"
        f"content-type: application/json\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(head.encode() + body)
        answer = b""
        while part := link.recv(65_536):
            answer += part
    if not answer.startswith(b"HTTP/1.1 200") or b"[DONE]" not in answer:
        sys.exit(f"the gateway did not answer: {answer[:300]!r}")


async def turn_walk(url: str) -> Walk:
    """Walk the first turn of a thread."""
    with open_store(url) as store:
        engine, model = Engine(store), ScriptedModel(lambda _: Answer(text="Noted. " * 20), provider="openai")
        for thread in "ab":
            await engine.append(thread, [{"role": "user", "content": "Day 1: 4 barrels of salt."}])
            with walking() as walk:
                async for _ in converse(engine, model, thread, CALL):
                    pass
        return walk


async def summary_walk(url: str) -> Walk:
    """Walk a turn after which a summary is due, until the summary is committed."""
    with open_store(url) as store:
        engine = Engine(store, settings=Settings(window=12_000, reserve=1_000))
        summary = Answer(text=json.dumps(SUMMARY))
        note = Answer(text="Noted. " + "The salt of that day is dry. " * 30)
        model = ScriptedModel(
            lambda asked: note if asked.messages[-1].text.startswith("Day") else summary, provider="openai"
        )
        summaries = Summaries(engine)
        for thread in "ab":
            for day in range(200):
                text = f"Day {day}: the cargo is {day + 3} barrels of salt, sent by Captain Olsen."
                await engine.append(thread, [{"role": "user", "content": text}])
                with walking() as walk:
                    async for _ in converse(engine, model, thread, CALL):
                        pass
                    await summaries.drain()
                if any(event.kind.value == "summary.applied" for event in store.events(thread)):
                    break
        return walk


def main() -> int:
    """Do all three walks and print how many modules each enters."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="list the functions, in order")
    parser.add_argument("--json", type=Path, help="write modules and functions to a file")
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        serve_upstream()
        return 0
    sys.path.insert(0, str(ROOT))
    threading.setprofile(_enter)
    sys.setprofile(_enter)
    with tempfile.TemporaryDirectory() as folder:
        walks = {
            "request": request_walk(f"{folder}/request.db"),
            "turn": asyncio.run(turn_walk(f"{folder}/turn.db")),
            "summary": asyncio.run(summary_walk(f"{folder}/summary.db")),
        }
    report = {}
    for name, walk in walks.items():
        modules = list(dict.fromkeys(function.partition(":")[0] for function in walk))
        report[name] = {"modules": modules, "functions": list(walk)}
        print(f"{name:8} {len(modules)} modules, {len(walk)} functions")
        if options.functions:
            print("\n".join(f"    {function}" for function in walk))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
