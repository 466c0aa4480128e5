"""The ruler of `lab speed gateways`: its upstream, its client, its sums. No peer is started and no time is judged."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from everlong.lab.environments import HERE, SERVER, Environments
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.client import KINDS, blocks
from everlong.lab.speed.gateways.parties import (
    DIRECT,
    EVERLONG,
    EVERLONG_POSTGRES,
    EVERLONG_SQLITE,
    EVERLONG_WORKERS,
    HOP,
    PARTIES,
    Party,
    run_gateway,
)
from everlong.lab.speed.gateways.processes import cpu_seconds, resident_megabytes, tree
from everlong.lab.speed.gateways.requests import ANTHROPIC, OPENAI, Connection, Conversation, Refusal, hello, pace
from everlong.lab.speed.gateways.run import QUICK_CROWD, QUICK_SIZES, SIZES, run_with
from everlong.lab.speed.gateways.servers import Pace, Upstream
from everlong.lab.speed.gateways.tables import (
    Added,
    Footprint,
    Rate,
    added,
    added_table,
    crowd_table,
    footprint_table,
    ninetieth,
    rate,
    rate_table,
)
from everlong.lab.speed.transcripts import build

FORMATS = (OPENAI, ANTHROPIC)
TRANSCRIPT = build(5_000, seed=3).messages


def bench_in(folder: Path, told: list[str] | None = None) -> Bench:
    return Bench(Environments(folder, (told if told is not None else []).append), quick=True, peers=False)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with run_gateway(bench_in(tmp_path_factory.mktemp("upstream")), DIRECT, HERE) as started:
        assert started is not None
        yield started.port


def body_of(request: bytes) -> dict[str, object]:
    head, _, body = request.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}\r\n".encode() in head
    parsed: dict[str, object] = json.loads(body)
    return parsed


def answer_to(port: int, pieces: list[bytes]) -> bytes:
    """All bytes of one answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            peer.sendall(piece)
        received = b""
        while not whole(received):
            data = peer.recv(65_536)
            assert data, "closed before the answer was whole"
            received += data
        return received


def whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(found) and (len(body) == int(length[1]) if length else body.endswith(b"\r\n0\r\n\r\n"))


def test_a_client_asks_after_a_question_and_after_the_last_result() -> None:
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert Conversation.of([{"role": role, "content": ""} for role in roles]).asks == (2, 5, 7)


def test_a_growing_conversation_keeps_what_it_has_sent() -> None:
    conversation = Conversation.of(TRANSCRIPT)
    bodies = [body_of(conversation.request(count, streamed=True)) for count in conversation.asks]
    for shorter, longer in pairwise(bodies):
        earlier, later = shorter["messages"], longer["messages"]
        assert isinstance(earlier, list)
        assert isinstance(later, list)
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)
    assert bodies[-1]["messages"] == TRANSCRIPT


def test_in_anthropics_format_turns_alternate_and_every_call_has_its_result() -> None:
    conversation = Conversation.of(TRANSCRIPT, ANTHROPIC)
    body = body_of(conversation.request(conversation.asks[-1], streamed=False))
    messages = body["messages"]
    assert isinstance(messages, list)
    assert body["system"] == TRANSCRIPT[0]["content"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    parts = [part for message in messages for part in message["content"] if isinstance(part, dict)]
    calls = [part["id"] for part in parts if part["type"] == "tool_use"]
    results = [part["tool_use_id"] for part in parts if part["type"] == "tool_result"]
    assert calls == results == [call["id"] for one in TRANSCRIPT for call in one.get("tool_calls", ())]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_the_upstream_answers_in_the_format_asked_for(upstream: int, fmt: str, streamed: bool) -> None:
    conversation = Conversation.of(TRANSCRIPT, fmt)
    request = conversation.request(conversation.asks[-1], streamed=streamed)
    head, _, body = answer_to(upstream, [request]).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert (b"text/event-stream" in head) is streamed
    if streamed:
        events = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
        assert len(events) > 10
        assert all(isinstance(json.loads(event), dict) for event in events)
        assert body.endswith(b"0\r\n\r\n")
    else:
        assert ("choices" if fmt == OPENAI else "stop_reason") in json.loads(body)


@pytest.mark.parametrize("at", [1, 20, 90, 150, 400], ids="cut at {}".format)
def test_the_upstream_waits_for_the_whole_request(upstream: int, at: int) -> None:
    request = hello(streamed=True)
    assert answer_to(upstream, [request[:at], request[at:]]) == answer_to(upstream, [request])


def test_the_upstream_takes_a_body_in_chunks_and_requests_one_after_the_other(upstream: int) -> None:
    head, _, body = hello().partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"content-length")]
    chunked = b"\r\n".join([*lines, b"transfer-encoding: chunked"]) + b"\r\n\r\n"
    pieces = [chunked, b"%x\r\n%b\r\n" % (len(body), body), b"0\r\n\r\n"]
    assert answer_to(upstream, pieces) == answer_to(upstream, [hello()])
    connection = Connection(upstream)
    sizes = [connection.ask(hello(streamed=streamed)).size for streamed in (False, True, False)]
    connection.close()
    assert sizes[0] == sizes[2] != sizes[1]


def test_the_upstream_is_told_how_long_to_think_and_answers_all_the_same() -> None:
    async def told(milliseconds: list[int]) -> list[float]:
        kept, found = Pace(), []
        server = await asyncio.get_running_loop().create_server(lambda: Upstream(kept), "127.0.0.1", 0)
        connection = Connection(server.sockets[0].getsockname()[1])
        for one in milliseconds:
            await asyncio.to_thread(connection.ask, pace(one))
            found.append(kept.seconds)
            assert (await asyncio.to_thread(connection.ask, hello())).size > 0
        connection.close()
        server.close()
        return found

    assert asyncio.run(told([5, 0])) == [0.005, 0.0]


def test_a_hop_gives_the_upstreams_bytes(upstream: int, tmp_path: Path) -> None:
    with run_gateway(bench_in(tmp_path), HOP, HERE, upstream) as hop:
        assert hop is not None
        for streamed in (False, True):
            assert answer_to(hop.port, [hello(streamed=streamed)]) == answer_to(upstream, [hello(streamed=streamed)])


def test_nobody_listening_is_a_refusal() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Refusal):
            Connection(taken.getsockname()[1]).ask(hello())


def test_a_gateway_that_ends_is_left_out_in_one_line(tmp_path: Path) -> None:
    told: list[str] = []
    code = "import sys; sys.exit('no licence')"
    with run_gateway(bench_in(tmp_path, told), Party("theirs", HERE, arguments=("-c", code)), HERE) as started:
        assert started is None
    assert told == ["left out, theirs: it ended with 1; no licence"]


def test_a_process_and_what_it_started_are_counted_together() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        parent.stdout.readline()
        assert len(tree(parent.pid)) == 2
        assert set(tree(parent.pid)) < set(tree(os.getpid()))
        assert (resident_megabytes(parent.pid) or 0) > 5
        assert cpu_seconds(parent.pid) is not None
        parent.stdin.write("\n")
    assert (tree(parent.pid), cpu_seconds(parent.pid), resident_megabytes(parent.pid)) == ([], None, None)


def test_no_block_times_a_conversation_that_another_has_made_known() -> None:
    conversations = [Conversation.of(build(4_000, seed).messages) for seed in range(8)]
    made = list(blocks(conversations[:4], conversations[4:], steps=2))
    new = [block.conversation for block in made if block.kind == "new"]
    growing = [block.conversation for block in made if block.kind == "growing"]
    assert new == conversations[4:]
    assert growing == conversations[:4]
    assert {(block.kind, block.streamed) for block in made} == {(kind, s) for kind in KINDS for s in (False, True)}
    assert all(len(list(block.requests())) == (2 if block.kind == "new" else 3) for block in made)


@pytest.mark.parametrize(
    ("times", "expected"), [([3.0], 3.0), ([float(n) for n in range(10, 0, -1)], 9.0), ([1.0, 2.0], 2.0)]
)
def test_nine_of_ten_stay_within_the_ninetieth_percentile(times: list[float], expected: float) -> None:
    assert ninetieth(times) == expected


def taken(plain: list[float], refused: int = 0) -> dict[str, dict[str, object]]:
    empty = {"streamed": [], "sent": 5_000, "cpu": 0.03, "requests": 10, "refused": refused, "said": "503 busy"}
    return {kind: {"plain": plain, **empty} for kind in KINDS}


def test_what_is_added_is_the_difference_to_direct() -> None:
    differences = added(taken([0.004, 0.005, 0.009]), taken([0.001, 0.001, 0.002]))
    assert set(differences) == {(kind, "plain") for kind in KINDS}
    assert differences["same", "plain"] == Added(pytest.approx(4.0), pytest.approx(7.0))


def test_a_rate_is_a_share_of_direct() -> None:
    direct = {"answered": 400, "seconds": 2.0, "cpu": 0.1}
    assert rate({"answered": 100, "seconds": 1.0, "cpu": 0.5}, direct) == Rate(100.0, 0.5, 5.0)
    assert rate({"answered": 0, "seconds": 1.0, "cpu": 0.5}, direct) == Rate(0.0, 0.0, 0.0)


@pytest.mark.parametrize(("seconds", "verdict"), [(0.0029, "2.4 ms, met."), (0.0049, "4.4 ms, NOT met.")])
def test_the_added_table_says_whether_the_aim_is_met_and_who_refused(seconds: float, verdict: str) -> None:
    found = {DIRECT.title: taken([0.0005]), EVERLONG.title: taken([seconds]), "theirs": taken([0.03], refused=2)}
    table = added_table(20_000, found)
    assert [row[0] for row in table.rows] == list(found)
    assert table.notes[-1].endswith(verdict)
    assert "theirs, new: 2 refused: 503 busy" in table.notes
    assert table.rows[1][-1] == "3 / 3 / 3"


def test_a_gateway_that_never_answered_has_a_row_without_figures() -> None:
    found = {DIRECT.title: taken([0.0005]), "theirs": taken([], refused=3)}
    table = added_table(20_000, found)
    assert set(table.rows[1][1:-1]) == {"–"}
    assert table.shown is not None
    assert table.shown.values == (0.0, 0.0)


def test_the_rate_table_takes_the_aim_where_the_upstream_thinks() -> None:
    def sums(answered: int) -> dict[str, object]:
        return {"answered": answered, "seconds": 1.0, "cpu": 0.5, "refused": 0, "said": ""}

    found = {
        "0": {DIRECT.title: sums(8_000), EVERLONG.title: sums(400)},
        "40": {DIRECT.title: sums(400), EVERLONG.title: sums(300)},
    }
    table = rate_table(20_000, 16, found)
    assert table.notes[-1].endswith("everlong: 75 %, met; flat out 5 %.")
    assert all(len(row) == len(table.head) for row in table.rows)


@pytest.mark.parametrize(("cpu", "verdict"), [(0.54, "1.08 ×, met;"), (0.6, "1.2 ×, NOT met;")])
def test_the_rate_table_compares_two_workers_with_one(cpu: float, verdict: str) -> None:
    def sums(cpu: float) -> dict[str, object]:
        return {"answered": 300, "seconds": 1.0, "cpu": cpu, "refused": 0, "said": ""}

    found = {DIRECT.title: sums(0.1), EVERLONG_SQLITE.title: sums(0.5), EVERLONG_WORKERS.title: sums(cpu)}
    table = rate_table(20_000, 16, {"0": found, "40": found}, fresh=True)
    assert verdict in table.notes[-1]
    assert table.title.endswith("a new connection for each request")


def test_the_added_table_tells_what_postgres_adds_to_sqlite() -> None:
    found = {
        DIRECT.title: taken([0.001]),
        EVERLONG_SQLITE.title: taken([0.003]),
        EVERLONG_POSTGRES.title: taken([0.0045]),
    }
    assert added_table(20_000, found).notes[-1].startswith("Postgres beside SQLite, growing: +1.5 ms in the median")


def test_without_a_database_its_row_is_left_out_in_one_line(tmp_path: Path) -> None:
    told: list[str] = []
    latency, _ = run_with(bench_in(tmp_path, told), (HOP, EVERLONG_POSTGRES))
    assert [row[0] for row in latency.rows] == [DIRECT.title, HOP.title]
    assert f"left out, {EVERLONG_POSTGRES.title}: name a database with --postgres" in told


@pytest.mark.parametrize(
    ("rest", "met"), [(Footprint(1.2, 60.0, 90.0, 70.0), "met"), (Footprint(1.2, None, 190.0, None), "NOT met")]
)
def test_the_last_table_tells_start_memory_and_size(rest: Footprint, met: str) -> None:
    table = footprint_table({EVERLONG.title: rest, "theirs": Footprint(9.0, 300.0, 400.0, 600.0)})
    assert table.notes[-1].endswith(f" MB, {met}.")
    assert table.rows[1] == ("theirs", "9", "300", "400", "600")


@pytest.mark.parametrize("party", PARTIES, ids=lambda party: party.title)
def test_every_command_and_file_says_where_everything_is(party: Party, tmp_path: Path) -> None:
    places = {"port": 4_001, "upstream": 4_002, "folder": tmp_path, "postgres": "postgresql://db/lab"}
    command = " ".join(party.command(Path("bin/python"), places))
    party.write_files(tmp_path, places)
    written = command + "".join(file.read_text(encoding="utf-8") for file in tmp_path.iterdir())
    assert "4001" in command
    assert "4002" in written
    assert not any(f"{{{name}}}" in written for name in places)


def test_the_server_has_what_the_gateway_runs_on() -> None:
    assert any(wanted.startswith("uvicorn") for wanted in SERVER.requires)
    assert not any(";" in wanted and "extra" in wanted for wanted in SERVER.requires)


@pytest.mark.parametrize("size", [*SIZES, *QUICK_SIZES], ids=lambda size: str(size.tokens))
def test_there_is_a_conversation_for_every_client(size: object) -> None:
    assert size.new >= size.clients  # type: ignore[attr-defined]
    assert size.growing % 2 == size.new % 2 == 0  # type: ignore[attr-defined]


def test_everlongs_own_gateway_answers_whatever_is_asked(tmp_path: Path) -> None:
    latency, _, crowd, rest = run_with(bench_in(tmp_path), (EVERLONG,))
    assert [row[0] for row in latency.rows[1:]] == [row[0] for row in rest.rows] == [EVERLONG.title]
    assert [row[0] for row in crowd.rows] == [EVERLONG.title]
    assert isinstance(crowd.data, dict)
    assert crowd.data[EVERLONG.title]["conversations"] == QUICK_CROWD.conversations
    assert isinstance(latency.data, dict)
    said = {times["said"] for kinds in latency.data.values() for times in kinds.values()}
    assert said == {""}


def test_memory_is_reckoned_for_many_conversations_from_those_that_were_shown() -> None:
    taken = {"before": 100.0, "after": 103.0, "cpu": 1.5, "conversations": 150}
    table = crowd_table(100_000, {EVERLONG.title: taken})
    assert table.rows == ((EVERLONG.title, "200", "10"),)
    assert "200 MB, met" in table.notes[-1]


def test_a_quick_run_measures_everybody_and_leaves_nobody_behind(tmp_path: Path) -> None:
    told: list[str] = []
    before = tree(os.getpid())
    latency, rates = run_with(bench_in(tmp_path, told), (HOP,))
    size = QUICK_SIZES[0]
    assert [row[0] for row in latency.rows] == [row[0] for row in rates.rows] == [DIRECT.title, HOP.title]
    assert isinstance(latency.data, dict)
    assert isinstance(rates.data, dict)
    for kinds in latency.data.values():
        assert all(times["refused"] == 0 for times in kinds.values())
        counts = {kind: (len(times["plain"]), len(times["streamed"])) for kind, times in kinds.items()}
        assert counts == {"growing": (size.steps, size.steps), "same": (size.steps, size.steps), "new": (1, 1)}
    for sums in rates.data.values():
        assert all(one["answered"] > 0 and one["refused"] == 0 for one in sums.values())
    assert tree(os.getpid()) == before
    assert not [line for line in told if "left out" in line]
