"""Sessions as people see them: boundaries in 80 columns, times, short ids, in every language."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from everlong.cli.sessions.lists import short_ids, when
from everlong.cli.sessions.transcript import Transcript, draw_session
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.core import Figures
from everlong.store import default_store, open_store
from tests.cli.running import everlong
from tests.store.contract.entries import point, talk


def test_chinese_where_the_locale_is_chinese(tmp_path: Path) -> None:
    store = str(tmp_path / "threads.db")
    with open_store(store) as threads:
        threads.create("t", title="船")
        threads.append("t", [*talk(2), point(2)])
    assert "条消息" in everlong("sessions", "show", "t", "--store", store, "--lang", "zh").out
    assert "标题" in everlong("sessions", "list", "--store", store, "--lang", "zh").out
    assert everlong("sessions", "undo", "t", "--store", store, "--lang", "zh").out.startswith(
        "已撤销压缩点 4。重新完整发送：2 条消息"
    )


REASONS = {"short": "high mark", "long": "more than the window takes"}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_a_boundary_is_told_whole_on_80_columns(language: Language, reason: str) -> None:
    figures = {"tokens_before": 123_456, "tokens_after": 45_678, "reason": reason}
    with open_store("memory:") as threads:
        threads.create("t")
        threads.append("t", [*talk(60), point(50, **figures), point(100, **figures)])
        rows = tuple(threads.read("t"))
        shown = Transcript(threads.thread("t"), rows, 0, tuple(threads.points("t")), ())
    out, say = StringIO(), Words(language, "sessions")
    draw_session(shown, Console(file=out, width=80, highlight=False), say)
    told = out.getvalue()
    assert "…" not in told
    assert max(cell_len(line) for line in told.splitlines()) <= 80
    tokens = say("tokens", before="123,456", after="45,678")
    for at, state in ((120, "boundary_older"), (121, "boundary_stands")):
        assert f"{say('boundary', at=str(at))} · {say(state)} · {tokens}" in told
    assert told.count(reason) == 2


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_a_boundary_tells_the_figures_that_were_fixed_when_it_was_made(language: Language) -> None:
    figures = Figures(messages=1_234, kept=30, shortened=4, before=223_456, after=145_678)
    made = replace(point(50, tokens_before=123_456, tokens_after=45_678, reason=REASONS["long"]), figures=figures)
    with open_store("memory:") as threads:
        threads.create("t")
        threads.append("t", [*talk(60), made])
        shown = Transcript(threads.thread("t"), tuple(threads.read("t")), 0, tuple(threads.points("t")), ())
    out, say = StringIO(), Words(language, "sessions")
    draw_session(shown, Console(file=out, width=80, highlight=False), say)
    told = out.getvalue()
    assert max(cell_len(line) for line in told.splitlines()) <= 80
    assert say.many("messages", 1_234) in told
    assert say("tokens", before="223,456", after="145,678") in told
    assert REASONS["long"] in told


NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(minutes=90), "1 h ago"),
        (timedelta(hours=25), "1 day ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=30), "2026-02-08"),
        (timedelta(seconds=-30), "just now"),
    ],
)
def test_when(ago: timedelta, shown: str) -> None:
    assert when(NOW - ago, NOW, Words(ENGLISH, "sessions")) == shown


def test_short_ids_tell_sessions_apart() -> None:
    long = ["0199aaaa-0000-4000-8000-000000000001", "0199aaaa-0000-4000-8000-000000000002", "cli:direct"]
    shortened = short_ids(long)
    assert shortened["cli:direct"] == "cli:direct"
    assert shortened[long[0]] != shortened[long[1]]
    assert short_ids([long[0], "zzz"])[long[0]] == "0199aaaa"


@pytest.mark.parametrize(
    ("platform", "environment", "end"),
    [
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/everlong/threads.db"),
        ("linux", {}, ".local/share/everlong/threads.db"),
        ("darwin", {}, "Library/Application Support/everlong/threads.db"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/everlong/threads.db"),
    ],
)
def test_the_default_store_is_in_the_users_data_folder(platform: str, environment: dict[str, str], end: str) -> None:
    assert default_store(environment, platform).endswith(end)
