"""Three `everlong serve` on one Postgres, and two workers on one file: one key, one limit, one account."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from everlong.gateway.keys.records import KeyRecords
from everlong.llm import ScriptedServer
from everlong.store import open_store
from tests.gateway.processes import ServingProcess
from tests.store.postgres_server import database_url, drop_database

REPLICAS, CLIENTS, LIMIT = 3, 50, 20
LONGEST = 180  # seconds; only a failing test waits so long
BODY = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "How many boats?"}]})


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    url = database_url()
    yield url
    drop_database(url)


@pytest.fixture(scope="module")
def replicas(
    upstream: ScriptedServer, store: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ServingProcess]]:
    options = ("--store", store, "--upstream", upstream.url, "--no-access-log", "--no-app")
    with ExitStack() as stack, ThreadPoolExecutor(REPLICAS) as pool:
        serving = [ServingProcess(*options, folder=tmp_path_factory.mktemp(f"replica{n}")) for n in range(REPLICAS)]
        running = list(pool.map(stack.enter_context, serving))
        ask(running[0], "POST", "/everlong/keys", json.dumps({"name": "first"}))
        for replica in running:  # from the first key on each needs one
            wait_until(lambda one=replica: ask(one, "GET", "/everlong/requests")[0] == 401)  # type: ignore[misc]
        yield running


def ask(replica: ServingProcess, method: str, path: str, body: str | None = None, key: str = "") -> tuple[int, Any]:
    link = HTTPConnection("127.0.0.1", replica.port, timeout=LONGEST)
    try:
        link.request(method, path, body, {"authorization": f"Bearer {key}"} if key else {})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        link.close()


def statuses(replicas: list[ServingProcess], key: str, requests: int) -> list[int]:
    with ThreadPoolExecutor(requests) as pool:
        asked = [
            pool.submit(ask, replicas[at % len(replicas)], "POST", "/v1/chat/completions", BODY, key)
            for at in range(requests)
        ]
        return [each.result()[0] for each in asked]


def wait_until(holds: Callable[[], bool]) -> None:
    end = monotonic() + LONGEST
    while not holds():
        assert monotonic() < end, "it never came to be"
        sleep(0.05)


def made(replicas: list[ServingProcess], name: str, **limits: float) -> str:
    """A key that every replica knows."""
    status, told = ask(replicas[0], "POST", "/everlong/keys", json.dumps({"name": name, "limits": limits}))
    assert status == 201, told
    key = str(told["key"])
    for replica in replicas:
        wait_until(lambda one=replica: ask(one, "GET", "/everlong/requests", None, key)[0] == 200)  # type: ignore[misc]
    return key


def test_fifty_clients_over_three_replicas_stay_within_a_limit(replicas: list[ServingProcess]) -> None:
    key = made(replicas, "busy", requests_per_minute=LIMIT)
    answers = statuses(replicas, key, CLIENTS)
    assert set(answers) == {200, 429}
    assert answers.count(200) == LIMIT


def test_spending_over_all_replicas_is_one_sum_and_one_budget(replicas: list[ServingProcess]) -> None:
    key = made(replicas, "spender", tokens_per_day=100_000)
    told = [ask(replica, "POST", "/v1/chat/completions", BODY, key)[1]["usage"] for replica in replicas for _ in "ab"]
    prompt = sum(usage["prompt_tokens"] for usage in told)

    def spent(replica: ServingProcess) -> dict[str, Any]:
        today: dict[str, Any] = ask(replica, "GET", "/everlong/keys/spender")[1]["today"]
        return today

    for replica in replicas:
        wait_until(lambda one=replica: spent(one)["requests"] == len(told))  # type: ignore[misc]
        assert spent(replica)["prompt"] == prompt
    total = prompt + sum(usage["completion_tokens"] for usage in told)
    ask(replicas[1], "PATCH", "/everlong/keys/spender", json.dumps({"tokens_per_day": total}))
    for replica in replicas:
        wait_until(lambda one=replica: ask(one, "POST", "/v1/chat/completions", BODY, key)[0] == 429)  # type: ignore[misc]


def test_a_key_that_is_revoked_is_refused_by_every_replica(replicas: list[ServingProcess], store: str) -> None:
    key = made(replicas, "leaving")
    with open_store(store) as threads:
        KeyRecords(threads).revoke("leaving")
    for replica in replicas:
        wait_until(lambda one=replica: ask(one, "POST", "/v1/chat/completions", BODY, key)[0] == 401)  # type: ignore[misc]


def test_two_workers_on_one_file_stay_within_a_limit(upstream: ScriptedServer, tmp_path: Path) -> None:
    file = f"sqlite:///{tmp_path / 'gateway.db'}"
    with open_store(file) as threads:
        _, key = KeyRecords(threads).create("busy", {"requests_per_minute": LIMIT})
    options = ("--store", file, "--upstream", upstream.url, "--no-access-log", "--no-app", "--workers", "2")
    with ServingProcess(*options, folder=tmp_path) as gateway:
        answers = statuses([gateway], key, CLIENTS)
    assert set(answers) == {200, 429}
    assert answers.count(200) == LIMIT
