"""The real local model: it really refuses what does not fit, and we really recover, streaming."""

import asyncio
import json
import os
from http.client import HTTPConnection
from pathlib import Path

import pytest

from everlong.engine import Call, Engine, Failed, Finished, Reply, Request, Said, converse
from everlong.errors import ContextOverflow, InputError
from everlong.folders import cache_folder
from everlong.llm.client import HttpModel
from everlong.llm.local.model_files import model_file
from everlong.llm.local.server import LocalServer
from everlong.store import MemoryThreads
from tests.core.build import assistant, system, user

CONTEXT = 2_048
WORDS = "The quick brown fox number {n} jumps over the lazy dog again. "


@pytest.fixture(scope="module")
def served() -> LocalServer:  # type: ignore[misc]
    with LocalServer(model_file(cache_folder(os.environ)), context=CONTEXT) as server:
        yield server


def test_it_tells_its_window_and_streams(served: LocalServer) -> None:
    async def run() -> tuple[int | None, list[Reply]]:
        async with HttpModel(served.endpoint()) as model:
            window = await model.served_window("local")
            request = Request(model="local", messages=(user("Say hello."),), max_tokens=6)
            return window, [reply async for reply in model.stream(request)]

    window, replies = asyncio.run(run())
    assert window == CONTEXT
    assert sum(isinstance(reply, Said) for reply in replies) > 1
    last = replies[-1]
    assert isinstance(last, Finished)
    assert last.usage is not None
    assert last.usage.prompt > 0


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic"])
def test_it_really_refuses_what_does_not_fit(served: LocalServer, fmt: str) -> None:
    async def run() -> list[Reply]:
        async with HttpModel(served.endpoint(fmt)) as model:
            request = Request(model="local", messages=(user(WORDS.format(n=1) * 300),), max_tokens=4)
            return [reply async for reply in model.stream(request)]

    (failed,) = asyncio.run(run())
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ContextOverflow)
    assert failed.error.limit == CONTEXT


def test_we_really_recover(served: LocalServer) -> None:
    """The window is not asked for here: the first request overflows, the error teaches it, the second one passes."""
    threads = MemoryThreads()
    threads.create("t")
    turns = [message for n in range(24) for message in (user(WORDS.format(n=n) * 8), assistant(WORDS.format(n=n)))]
    threads.append("t", [system("Be brief."), *turns, user("Say hello.")])
    engine = Engine(threads)

    async def run() -> list[Reply]:
        async with HttpModel(served.endpoint()) as model:
            call = Call(model="local", max_tokens=6, served=128_000)
            return [reply async for reply in converse(engine, model, "t", call)]

    replies = asyncio.run(run())
    assert isinstance(replies[-1], Finished)
    assert any(isinstance(reply, Said) for reply in replies)
    kinds = [event.kind.value for event in threads.events("t")]
    assert [kind for kind in kinds if kind.startswith("overflow")] == ["overflow.detected", "overflow.recovered"]
    assert "window.learned" in kinds


def test_nobody_uses_it_or_reads_what_it_was_told_without_its_key(served: LocalServer) -> None:
    """A page in a browser of this machine can reach every port of it."""
    told = {}
    for key in ("", "wrong", served.key):
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/slots"), ("GET", "/props")):
            connection = HTTPConnection(served.address.removeprefix("http://"), timeout=60)
            headers = {"origin": "https://evil.example"} | ({"authorization": f"Bearer {key}"} if key else {})
            body = {"model": "local", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
            connection.request(method, path, json.dumps(body) if method == "POST" else None, headers)
            answer = connection.getresponse()
            told[key, path] = answer.status
            assert answer.getheader("access-control-allow-origin") not in ("*", "https://evil.example")
            connection.close()
    assert {status for (key, _), status in told.items() if key != served.key} == {401}
    assert told[served.key, "/v1/chat/completions"] == 200
    assert served.key not in " ".join(served._command) + repr(served.endpoint())


def test_a_file_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    server = LocalServer(broken, context=CONTEXT)
    with pytest.raises(InputError, match="did not start"):
        server.__enter__()
    with pytest.raises(InputError, match="no such model file"):
        LocalServer(tmp_path / "absent.gguf")
