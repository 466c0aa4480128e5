"""Summaries of conversations as jobs on one Postgres: written by any process, taken over, applied once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from tests.engine.authors import HONEST, is_asked_to_summarise
from tests.gateway.resending import Resending
from tests.gateway.running import RunningGateway
from tests.store.postgres_server import database_url, drop_database

LEASE = 3.0
NEVER = 3_600.0
KEYS = {"OPERATORS_KEY": "sk-operator"}


class Upstream:
    """A model that talks, and whose summaries take for ever as long as they are held."""

    def __init__(self) -> None:
        self.asked: list[ReceivedRequest] = []
        self.held = True
        self.came = Event()

    def __call__(self, asked: ReceivedRequest) -> Answer:
        if not is_asked_to_summarise(asked):
            return Answer(text="Noted.")
        self.asked.append(asked)
        self.came.set()
        return Answer(text=HONEST, before=NEVER if self.held else 0.0)


@pytest.fixture
def url() -> Iterator[str]:
    made = database_url()
    yield made
    drop_database(made)


@contextmanager
def working(url: str, config: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """`everlong worker` as a process of its own, once it works."""
    command = (
        sys.executable,
        "-m",
        "everlong",
        "worker",
        "--no-app",
        "--store",
        url,
        "--config",
        str(config),
        *options,
    )
    folder = config.parent
    own = {"HOME": str(folder), "EVERLONG_OFFLINE": "1", **KEYS}
    worker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=os.environ | own)
    assert worker.stderr is not None
    try:
        line = worker.stderr.readline()
        assert "background jobs" in line, line + worker.stderr.read()
        yield worker
    finally:
        worker.kill()
        worker.wait()
        worker.stderr.close()


def configured(folder: Path, upstream: ScriptedServer) -> Path:
    """The file that gateways and workers share: the operator's key for the upstream is in the environment."""
    file = folder / "shared.toml"
    file.write_text(
        f'jobs_lease = {LEASE}\n[[upstreams]]\nname = "team"\nurl = "{upstream.url}"\nkey_env = "OPERATORS_KEY"\n',
        encoding="utf-8",
    )
    return file


def gateway_of(url: str, config: Path, **options: Any) -> RunningGateway:
    return RunningGateway(store=url, file=config, environment=KEYS, **options)


def grown(client: Resending, gateway: RunningGateway, until: Callable[[], object]) -> None:
    """Let the conversation grow until something holds."""
    while not until():
        turn = len(client.messages)
        client.messages.append({"role": "user", "content": f"{turn}: " + f"pier {turn} has boats. " * 60})
        assert client.tried(gateway)[0] == 200
        client.messages.append({"role": "assistant", "content": "Noted."})
        client.settle(gateway)
        assert turn < 60, "a summary is due at some time"


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as link:
        return link.execute(query.encode()).fetchall()


def jobs_in(url: str) -> list[tuple[Any, ...]]:
    return rows(url, "SELECT task_name, status::text FROM everlong.procrastinate_jobs WHERE task_name LIKE '%summary'")


def summaries_in(url: str) -> int:
    """How many points with a summary were stored for conversations."""
    marks = rows(url, r"SELECT value FROM everlong.facts WHERE position('gateway/marks/'::bytea in kind) = 1")
    return sum(b'"reason":"summary"' in bytes(value).replace(b'\\"', b'"') for (value,) in marks)


def wait_for(holds: Callable[[], object]) -> None:
    pause = Event()
    while not holds():
        pause.wait(0.02)


def test_a_summary_is_taken_over_from_a_killed_worker_and_applied_once(url: str, tmp_path: Path) -> None:
    script, client = Upstream(), Resending("openai-chat")
    with (
        ScriptedServer(script, window=Window(8_000, told=True)) as upstream,
        gateway_of(url, config := configured(tmp_path, upstream), jobs="apart") as gateway,
    ):
        with working(url, config) as first:
            grown(client, gateway, lambda: jobs_in(url))
            assert script.came.wait(30)
            first.send_signal(signal.SIGKILL)
            first.wait()
        assert jobs_in(url) == [("conversation summary", "doing")]
        script.held = False
        with working(url, config):
            wait_for(lambda: not jobs_in(url))
        assert summaries_in(url) == 1
        client.messages.append({"role": "user", "content": "And now?"})
        assert client.tried(gateway)[0] == 200
        assert script.asked[0].messages == script.asked[1].messages, "it is asked the same again"
        assert rows(url, "SELECT * FROM everlong.job_loads") == []


def test_a_key_of_a_client_is_never_stored_and_its_summary_stays_in_the_process(url: str) -> None:
    script, client = Upstream(), Resending("openai-chat", key="sk-client-secret-0123456789")
    script.held = False
    with (
        ScriptedServer(script, window=Window(8_000, told=True)) as upstream,
        RunningGateway(upstream=upstream.url, store=url, jobs="apart", jobs_lease=LEASE) as gateway,
    ):
        grown(client, gateway, lambda: script.asked)
        assert jobs_in(url) == []
        tables = rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'everlong'")
        for (table,) in tables:
            assert rows(url, f"SELECT * FROM everlong.{table} AS t WHERE t::text LIKE '%sk-client-secret%'") == []


def test_nothing_is_carried_where_nothing_may_be_kept(url: str, tmp_path: Path) -> None:
    script, client = Upstream(), Resending("openai-chat")
    script.held = False
    with (
        ScriptedServer(script, window=Window(8_000, told=True)) as upstream,
        gateway_of(url, configured(tmp_path, upstream), keep="nothing") as gateway,
    ):
        grown(client, gateway, lambda: script.asked)
        assert rows(url, "SELECT count(*) FROM everlong.job_loads") == [(0,)]


def test_every_gateway_works_by_itself_and_a_worker_may_end_when_all_is_done(url: str, tmp_path: Path) -> None:
    script, client = Upstream(), Resending("openai-chat")
    script.held = False
    with ScriptedServer(script, window=Window(8_000, told=True)) as upstream:
        config = configured(tmp_path, upstream)
        with gateway_of(url, config) as gateway:
            grown(client, gateway, lambda: summaries_in(url))
            wait_for(lambda: not jobs_in(url))
        with gateway_of(url, config, jobs="apart") as gateway:
            other = Resending("anthropic")
            grown(other, gateway, lambda: jobs_in(url))
        with working(url, config, "--drain") as worker:
            assert worker.wait() == 0
        assert jobs_in(url) == []
        assert summaries_in(url) >= 2
