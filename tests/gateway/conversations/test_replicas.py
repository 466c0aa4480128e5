"""Several processes on one store: whichever gets the next request, its provider sees the same bytes.

Conversations grow past their window, each request on a new connection to a process chosen by chance. One process serves
the same conversations for comparison. The long form has more of all, with EVERLONG_SOAK.
"""

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from tests.engine.authors import both, structured
from tests.gateway.processes import ServingProcess
from tests.gateway.resending import MARK, members
from tests.gateway.running import RunningGateway
from tests.store.postgres_server import database_url, drop_database

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
CONVERSATIONS, TURNS = (20, 40) if SOAK else (3, 14)
WINDOW = 3_000  # tokens
#: Says which process is asked: a port.
Value = dict[str, Any]
Choose = Callable[[int, int], int]


def words(seed: str, count: int) -> str:
    chance = random.Random(seed)
    return " ".join(
        f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{chance.randrange(99)}" for _ in range(count)
    )


def talk(asked: ReceivedRequest) -> Answer:
    return Answer(text=f"Noted: {words(asked.messages[-1].text[:20], 12)}.")


def summarise(asked: ReceivedRequest) -> Answer:
    """An honest summary: one that is not accepted would be asked for again, by each process as often as by one."""
    questions = [message.text[:60] for message in asked.messages if message.text.startswith("Question")]
    return Answer(text=structured(context=f"The user lists words: {'; '.join(questions)}.", done=["All were noted."]))


def server() -> ScriptedServer:
    # Its refusals tell the window: one that has to be found out is learned in steps, and each may change a prefix.
    return ScriptedServer(both(talk, summarise), window=Window(WINDOW, told=True))


def ask(
    port: int, number: int, said: Sequence[dict[str, Any]], **fields: object
) -> tuple[dict[str, Any], dict[str, str]]:
    """One request on a connection of its own: the answer and its headers."""
    body = {"model": "gpt-4o", MARK: number, "messages": [{"role": "system", "content": "Be brief."}, *said], **fields}
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    request = Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=60) as answer:
        return json.load(answer), {name.lower(): value for name, value in answer.headers.items()}


def grow(choose: Choose, number: int, turns: int = TURNS) -> list[str]:
    """One conversation from its beginning; the ids of its requests."""
    said: list[Value] = []
    ids = []
    for turn in range(turns):
        question = f"Question {turn} of {number}: {words(f'{number} {turn}', 120)}"
        said.append({"role": "user", "content": question})
        answer, headers = ask(choose(number, turn), number, said)
        said.append(answer["choices"][0]["message"])
        ids.append(headers["x-everlong-request"])
    return ids


def grow_all(choose: Choose, count: int = CONVERSATIONS) -> list[list[str]]:
    with ThreadPoolExecutor(4) as hands:
        return list(hands.map(lambda number: grow(choose, number), range(count)))


def forwarded(upstream: ScriptedServer, number: int) -> list[list[bytes]]:
    """What the provider took of one conversation: the messages of each request, byte for byte."""
    asked = [one for one in upstream.requests if json.loads(one.body).get(MARK) == number]
    return [members(one) for one in asked if one.tokens + (one.max_tokens or 0) <= WINDOW]


def breaks(upstream: ScriptedServer, count: int = CONVERSATIONS) -> tuple[int, int]:
    """How often a request does not begin with the bytes of the one before it, and how often it is no smaller then."""
    broken = [
        sum(map(len, later)) >= sum(map(len, earlier))
        for number in range(count)
        for earlier, later in pairwise(forwarded(upstream, number))
        if later[: len(earlier)] != earlier
    ]
    return len(broken), sum(broken)


def summaries(upstream: ScriptedServer) -> int:
    return sum(MARK not in json.loads(asked.body) for asked in upstream.requests)


@contextmanager
def processes(count: int, upstream: ScriptedServer, store: str, folder: Path, *options: str) -> Iterator[list[int]]:
    """So many gateways, each a process of its own; their ports."""
    given = ("--upstream", upstream.url, "--store", store, "--no-access-log", "--no-app", *options)
    with ExitStack() as stack:
        yield [stack.enter_context(ServingProcess(*given, folder=folder)).port for _ in range(count)]


@contextmanager
def postgres() -> Iterator[str]:
    url = database_url()
    try:
        yield url
    finally:
        drop_database(url)


def test_on_postgres_two_processes_forward_as_one_does(tmp_path: Path) -> None:
    with postgres() as store, server() as alone, processes(1, alone, store, tmp_path) as [port]:
        grow_all(lambda _number, _turn: port)
    chance = random.Random(26)
    with postgres() as store, server() as upstream, processes(2, upstream, store, tmp_path) as ports:
        ids = grow_all(lambda _number, _turn: chance.choice(ports))
        expect_as_alone(upstream, alone)
        expect_explained(ports, ids)


def test_two_workers_on_one_file_forward_as_one_does(tmp_path: Path) -> None:
    with server() as alone, processes(1, alone, f"sqlite:///{tmp_path}/a.db", tmp_path) as [port]:
        grow_all(lambda _number, _turn: port)
    workers = ("--workers", "2")
    with server() as upstream, processes(1, upstream, f"sqlite:///{tmp_path}/b.db", tmp_path, *workers) as [port]:
        ids = grow_all(lambda _number, _turn: port)
        expect_as_alone(upstream, alone)
        expect_explained([port], ids)


def expect_as_alone(upstream: ScriptedServer, alone: ScriptedServer) -> None:
    """No more breaks and summaries than one process needs, but for what chance makes earlier or later."""
    once, _ = breaks(alone)
    assert once >= CONVERSATIONS, "all of them outgrew the window"
    found, unshrunk = breaks(upstream)
    assert unshrunk <= CONVERSATIONS // 3, "a request that changes is one that was compacted"
    assert found <= once + CONVERSATIONS
    assert summaries(upstream) <= summaries(alone) + CONVERSATIONS


def expect_explained(ports: Sequence[int], ids: Sequence[Sequence[str]]) -> None:
    """Each request is explained by any process, and stands in the list."""
    chance = random.Random(7)
    for name in (*chance.sample([one for each in ids for one in each], 8), *(each[-1] for each in ids)):
        address = f"http://127.0.0.1:{chance.choice(ports)}/everlong/requests"
        request = Request(f"{address}/{name}", headers={"authorization": "Bearer k"})
        with urlopen(request, timeout=60) as answer:
            assert json.load(answer)["id"] == name
    with urlopen(Request(address, headers={"authorization": "Bearer k"}), timeout=60) as answer:
        listed = [one["id"] for one in json.load(answer)]
    assert {each[-1] for each in ids} <= set(listed)


# --- in one process, where the store can be watched --------------------------------------------------


@contextmanager
def replicas(count: int, upstream: ScriptedServer, folder: Path) -> Iterator[list[RunningGateway]]:
    """Gateways with memories of their own on one file, each as if it were one of several workers."""
    store = f"sqlite:///{folder}/shared.db"
    with ExitStack() as stack:
        yield [stack.enter_context(RunningGateway(upstream=upstream.url, store=store, workers=2)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(8) if SOAK else range(2))
def test_law_6_any_process_sends_the_same_bytes(tmp_path: Path, seed: int) -> None:
    """Nothing is waited for between two requests, and each goes to a process by chance."""
    chance = random.Random(seed)
    with server() as upstream, replicas(3, upstream, tmp_path) as gateways:
        told = 0
        said: list[Value] = []
        for turn in range(2 * TURNS):
            said.append({"role": "user", "content": f"Question {turn}: {words(f'{seed} {turn}', 120)}"})
            answer, headers = ask(chance.choice(gateways).port, 0, said)
            told += int(headers["x-everlong-compactions"])
            said.append(answer["choices"][0]["message"])
        found, _ = breaks(upstream, 1)
    assert 0 < found <= told


def test_a_compaction_is_stored_before_anyone_is_sent_it(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def watch(asked: ReceivedRequest) -> Answer:
        store = gateways[0].services.state_store.store
        lists = store.facts("gateway/newest").values()
        background = sum("<background-" in message.text for message in asked.messages)
        seen.append((background, sum(len(json.loads(names)) for names in lists)))
        return talk(asked)

    with ScriptedServer(both(watch), window=Window(WINDOW)) as upstream, replicas(2, upstream, tmp_path) as gateways:
        grow(lambda _number, turn: gateways[turn % 2].port, 0)
    assert any(background for background, _ in seen)
    assert all(stored for background, stored in seen if background)


def test_the_same_request_at_two_processes_at_once_is_sent_alike(tmp_path: Path) -> None:
    """Both compact; one of them is first, and the other sends what that one made."""
    with server() as upstream, replicas(2, upstream, tmp_path) as gateways, ThreadPoolExecutor(2) as hands:
        said: list[Value] = []
        for turn in range(TURNS):
            said.append({"role": "user", "content": f"Question {turn}: {words(str(turn), 120)}"})
            answers = list(hands.map(lambda gateway: ask(gateway.port, 0, said)[0], gateways))
            said.append(answers[0]["choices"][0]["message"])
            one, other = forwarded(upstream, 0)[-2:]
            assert one == other, turn


def test_a_request_asks_the_store_little(tmp_path: Path) -> None:
    """Where nothing is compacted: one look at the list of marks, and nothing written before the answer."""
    with server() as upstream, replicas(2, upstream, tmp_path) as gateways:
        said: list[Value] = [{"role": "user", "content": words("first", 200)}]
        first, _ = ask(gateways[0].port, 0, said)
        said += [first["choices"][0]["message"], {"role": "user", "content": "And now?"}]
        store = gateways[0].services.state_store
        store.flush()
        reads: list[str] = []
        fact = store.store.fact
        store.store.fact = lambda kind, key: (reads.append(kind), fact(kind, key))[1]  # type: ignore[method-assign]
        ask(gateways[0].port, 0, said)
        assert reads.count("gateway/newest") == 1
        assert not any(kind.startswith("gateway/marks") for kind in reads)
