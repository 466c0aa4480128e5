"""The refresh of the tables, against a server of our own: what is believed, what is kept, and what never hurts."""

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from everlong.errors import InputError
from everlong.llm.registry_files import (
    NEVER_TRIED,
    LastTry,
    fetched_registry,
    last_try,
    registry_now,
    write_registry,
    write_try,
)
from everlong.llm.registry_refresh import LARGEST, Refreshed, RefreshSettings, due, implausible, refresh, refresh_if_due
from everlong.windows import SOURCES, Registry, bundled, window
from tests.llm.tables import Answers, litellm_table, models_dev_table, never, served
from tests.windows.tables import row

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
NOWHERE = "http://127.0.0.1:1/api.json"  # a port that nothing may listen on


def refreshed(folder: Path, answers: Answers, *, now: datetime = NOW, seconds: float = 30.0) -> Refreshed:
    async def run() -> Refreshed:
        async with served(answers) as sources, aiohttp.ClientSession() as session:
            return await refresh(session, folder, now=now, sources=sources, seconds=seconds)

    return asyncio.run(run())


def test_a_new_table_counts_from_the_next_reading_on(tmp_path: Path) -> None:
    done = refreshed(tmp_path, Answers(models_dev_table(gpt_4o=256_000, gpt_99=2_000_000)))
    assert (done.table, done.said) == ("models.dev", f"{done.rows:,} models of models.dev, as of 2027-01-04")
    registry = registry_now(tmp_path)
    found = window("gpt-4o", registry=registry)
    assert (found.context, found.source, found.date) == (256_000, "registry", "2027-01-04")
    assert found.output == window("gpt-4o").output, "a figure that the new table lacks is kept from the old"
    assert window("gpt-99", registry=registry).context == 2_000_000
    assert not window("gpt-99").known, "the bundled registry is as it was"
    assert last_try(tmp_path) == LastTry(NOW)


def test_a_table_like_the_bundled_one_changes_no_window(tmp_path: Path) -> None:
    refreshed(tmp_path, Answers(models_dev_table()))
    windows = {(entry.table, entry.provider, entry.id): entry.window for entry in registry_now(tmp_path)}
    assert windows == {(entry.table, entry.provider, entry.id): entry.window for entry in bundled()}


def test_a_fetched_table_is_put_together_as_the_bundled_one_was(tmp_path: Path) -> None:
    table = models_dev_table(tiny=512)
    table["openai"]["models"]["gpt-99"] = {"cost": {"input": 1}}  # type: ignore[index, call-overload]
    table["reseller"] = {"models": {"gpt-99": {"limit": {"context": 300_000}}}}
    refreshed(tmp_path, Answers(table))
    rows = {(entry.provider, entry.id): entry for entry in fetched_registry(tmp_path)}
    assert rows["openai", "gpt-99"].window == 300_000
    assert rows["openai", "gpt-99"].inferred
    assert ("openai", "tiny") not in rows


def test_what_both_sources_brought_is_kept_side_by_side(tmp_path: Path) -> None:
    refreshed(tmp_path, Answers(models_dev_table(gpt_99=2_000_000)))
    refreshed(tmp_path, Answers(503, litellm_table(gpt_98=500_000)), now=NOW + timedelta(days=7))
    registry = registry_now(tmp_path)
    assert window("gpt-99", registry=registry).date == "2027-01-04"
    assert window("gpt-98", registry=registry).date == "2027-01-11"


async def cut_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.abort()
    return response


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    block = b" " * (1 << 20)
    for _ in range(50):
        await response.write(block)
    return response


async def misnamed(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b"not compressed", headers={"content-encoding": "gzip"})


#: What the first source answers, and what is said of it.
AWAY: list[tuple[str, object, str]] = [
    ("error", 500, "models.dev: status 500"),
    ("gone", 404, "models.dev: status 404"),
    ("garbage", b"<html>Service unavailable</html>", "models.dev: no JSON"),
    ("not text", b"\xff\xfe\x00\x01", "models.dev: no JSON"),
    ("half a table", json.dumps(models_dev_table()).encode()[:100_000], "models.dev: no JSON"),
    ("nothing", b"", "models.dev: no JSON"),
    ("empty table", {}, "models.dev: it lists no models"),
    ("another shape", [1, 2, 3], "models.dev: it lists no models"),
    (
        "hardly a table",
        {"openai": {"models": {"gpt-4o": {"limit": {"context": 128_000}}}}},
        "models.dev: it lists only 1 of ",
    ),
    ("too deep", b"[" * 200_000, "models.dev: "),
    (
        "a figure beyond all",
        {"openai": {"models": {"gpt-4o": {"limit": {"context": 10**400}}}}},
        "models.dev: ",
    ),
    ("50 MB", endless, f"models.dev: more than {LARGEST:,} bytes"),
    ("never ends", never, "models.dev: "),
    ("breaks off", cut_off, "models.dev: "),
    ("wrong encoding", misnamed, "models.dev: "),
]


@pytest.mark.parametrize(("answer", "said"), [case[1:] for case in AWAY], ids=[case[0] for case in AWAY])
def test_a_first_source_that_fails_leaves_everything_as_it_was(tmp_path: Path, answer: object, said: str) -> None:
    write_registry(tmp_path, Registry((row("openai", "gpt-99", 2_000_000, date="2027-01-04"),)))
    before = set(registry_now(tmp_path))
    answers = Answers(answer)  # type: ignore[arg-type]
    done = refreshed(tmp_path, answers, now=NOW + timedelta(days=7), seconds=0.5 if answer is never else 30.0)
    assert answers.asked == ["models.dev", "litellm"]
    assert (done.table, done.rows) == ("", 0)
    assert done.said.startswith(f"the model registry was not refreshed ({said}")
    assert done.said.endswith("; litellm: status 404)")
    assert "\n" not in done.said
    assert set(registry_now(tmp_path)) == before
    assert last_try(tmp_path) == LastTry(NOW + timedelta(days=7), done.said)


def test_no_network_is_one_line(tmp_path: Path) -> None:
    source = replace(SOURCES[0], url=NOWHERE)
    done = asyncio.run(refresh(None, tmp_path, now=NOW, sources=[source]))
    assert done.table == ""
    assert done.said.startswith("the model registry was not refreshed (models.dev: Cannot connect to host 127.0.0.1:1")
    assert registry_now(tmp_path) is bundled()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answers = Answers(models_dev_table())
    done = refreshed(tmp_path / "file", answers)
    assert done.said.startswith("the model registry cannot be saved: ")
    assert answers.asked == [], "nobody is asked for what cannot be kept"


def test_cancelling_leaves_no_half_file(tmp_path: Path) -> None:
    async def run() -> None:
        answers = Answers(never)
        async with served(answers) as sources:
            task = asyncio.create_task(refresh(None, tmp_path, now=NOW, sources=sources))
            await answers.began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert [path.name for path in tmp_path.iterdir()] == ["refresh.json"]
    assert last_try(tmp_path) == LastTry(NOW, "the last refresh did not finish")
    assert registry_now(tmp_path) is bundled()


BROKEN = {
    "garbage": b"garbage",
    "nothing": b"",
    "half": gzip.compress(b'{"tables": []')[:-4],
    "not deflated": gzip.compress(b"")[:10] + b"\xff" * 40,
    "no JSON": gzip.compress(b"{"),
    "a list": gzip.compress(b"[]"),
    "other keys": gzip.compress(b'{"tables": [], "models": [1]}'),
    "a row too long": gzip.compress(
        json.dumps({"tables": [{"name": "t", "date": "d"}], "models": {"p": [[0] * 40]}}).encode()
    ),
    "no such table": gzip.compress(b'{"tables": [], "models": {"p": [[3, "m"]]}}'),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_kept_table_that_cannot_be_read_is_no_table(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "models.json.gz").write_bytes(content)
    assert registry_now(tmp_path) is bundled()


def test_a_refresh_puts_a_table_in_place_of_a_broken_one(tmp_path: Path) -> None:
    (tmp_path / "models.json.gz").write_bytes(BROKEN["half"])
    assert refreshed(tmp_path, Answers(models_dev_table(gpt_99=2_000_000))).table
    assert len(fetched_registry(tmp_path)) > 1_000


@pytest.mark.parametrize(
    "state", [b"", b"[]", b"{}", b'{"tried": "yesterday"}', b'{"tried": "2027-01-04", "failure": ""}', b"\xff"]
)
def test_a_state_that_cannot_be_read_is_no_state(tmp_path: Path, state: bytes) -> None:
    (tmp_path / "refresh.json").write_bytes(state)
    assert last_try(tmp_path) == NEVER_TRIED


def registry(*windows: int) -> Registry:
    return Registry(tuple(row("openai", f"m-{at}", window) for at, window in enumerate(windows)))


PLAUSIBLE = [
    ("the same", registry(8_192, 8_192), registry(8_192, 8_192), ""),
    ("more", registry(8_192, 8_192), registry(8_192), ""),
    ("half of them otherwise", registry(1_024, 8_192), registry(8_192, 8_192), ""),
    ("nothing known", registry(8_192), registry(), ""),
    ("a tenth", registry(8_192), registry(*[8_192] * 10), ""),
    ("less than a tenth", registry(8_192), registry(*[8_192] * 11), "it lists only 1 of 11 known models"),
    (
        "all otherwise",
        registry(1_024, 1_024),
        registry(8_192, 8_192),
        "it contradicts 2 of 2 known models",
    ),
    ("empty", registry(), registry(), "it lists no models"),
    ("too many", registry(*[8_192] * 100_001), registry(), "it lists 100,001 models, which is too many"),
]


@pytest.mark.parametrize(("fresh", "known", "reason"), [c[1:] for c in PLAUSIBLE], ids=[c[0] for c in PLAUSIBLE])
def test_which_tables_are_believed(fresh: Registry, known: Registry, reason: str) -> None:
    assert implausible(fresh, known) == reason


BUNDLED_DAY = datetime.fromisoformat(dict(bundled().snapshots)["models.dev"]).replace(tzinfo=UTC)
HOURS = timedelta(hours=1)
#: The last try, how long ago it was, the settings, and whether a refresh is due.
TIMES: list[tuple[str, LastTry | None, timedelta, RefreshSettings, bool]] = [
    ("a bundled table of today", None, 2 * HOURS, RefreshSettings(), False),
    ("a bundled table of last week", None, 8 * 24 * HOURS, RefreshSettings(), True),
    ("refreshed yesterday", LastTry(NOW), 24 * HOURS, RefreshSettings(), False),
    ("just under a week", LastTry(NOW), 7 * 24 * HOURS - HOURS, RefreshSettings(), False),
    ("a week and a tenth", LastTry(NOW), 7 * 24 * HOURS * 1.1, RefreshSettings(), True),
    ("failed an hour ago", LastTry(NOW, "no network"), HOURS, RefreshSettings(), False),
    ("failed two days ago", LastTry(NOW, "no network"), 48 * HOURS, RefreshSettings(), True),
    ("a clock set back", LastTry(NOW), -HOURS, RefreshSettings(), True),
    ("offline", LastTry(NOW), 365 * 24 * HOURS, RefreshSettings(offline=True), False),
    ("never", LastTry(NOW), 365 * 24 * HOURS, RefreshSettings(days=0), False),
    ("daily", LastTry(NOW), 27 * HOURS, RefreshSettings(days=1), True),
    ("failed, but asked for oftener", LastTry(NOW, "no network"), 14 * HOURS, RefreshSettings(days=0.5), True),
]


@pytest.mark.parametrize(("tried", "ago", "settings", "is_due"), [t[1:] for t in TIMES], ids=[t[0] for t in TIMES])
def test_when_a_refresh_is_due(
    tmp_path: Path, tried: LastTry | None, ago: timedelta, settings: RefreshSettings, is_due: bool
) -> None:
    if tried is not None:
        write_try(tmp_path, tried)
    since = BUNDLED_DAY if tried is None or tried.at is None else tried.at
    assert due(tmp_path, since + ago, settings) is is_due


def test_not_everyone_asks_at_the_same_hour(tmp_path: Path) -> None:
    week = 7 * 24 * HOURS
    folders = [tmp_path / str(number) for number in range(40)]
    for folder in folders:
        write_try(folder, LastTry(NOW))
    answers = [[due(folder, NOW + week * (1 + share / 100)) for share in range(11)] for folder in folders]
    assert len({answer.index(True) for answer in answers}) > 3
    assert answers == [[due(folder, NOW + week * (1 + share / 100)) for share in range(11)] for folder in folders]


def test_the_background_task_asks_once_and_gives_what_it_did(tmp_path: Path) -> None:
    async def run() -> None:
        answers = Answers(models_dev_table(gpt_99=2_000_000))
        async with served(answers) as sources:
            done = await refresh_if_due(tmp_path, NOW, sources=sources)
            assert done is not None
            assert done.table == "models.dev"
            assert await refresh_if_due(tmp_path, NOW + timedelta(days=1), sources=sources) is None
        assert answers.asked == ["models.dev"]

    asyncio.run(run())


def test_an_owner_that_ends_first_is_not_held_up(tmp_path: Path) -> None:
    async def run() -> str:
        answers = Answers(never)
        async with served(answers) as sources:
            refresh_if_due(tmp_path, NOW, sources=sources)
            await answers.began.wait()
            return "the owner's own work"

    assert asyncio.run(run()) == "the owner's own work"


ENVIRONMENTS = [
    ({}, RefreshSettings()),
    ({"EVERLONG_OFFLINE": "1"}, RefreshSettings(offline=True)),
    ({"EVERLONG_OFFLINE": "true", "EVERLONG_REFRESH_DAYS": "30"}, RefreshSettings(offline=True, days=30)),
    ({"EVERLONG_OFFLINE": "0"}, RefreshSettings()),
    ({"EVERLONG_OFFLINE": ""}, RefreshSettings()),
    ({"EVERLONG_REFRESH_DAYS": "0"}, RefreshSettings(days=0)),
]


@pytest.mark.parametrize(("environment", "settings"), ENVIRONMENTS, ids=[str(e) for e, _ in ENVIRONMENTS])
def test_the_environment_switches_it_off(environment: dict[str, str], settings: RefreshSettings) -> None:
    assert RefreshSettings.from_environment(environment) == settings


@pytest.mark.parametrize("days", ["weekly", "-1", "nan"])
def test_days_that_are_none_are_told(days: str) -> None:
    with pytest.raises(InputError, match="days"):
        RefreshSettings.from_environment({"EVERLONG_REFRESH_DAYS": days})
