"""`everlong sessions remove`: what goes, what stays, and what is asked before."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everlong.store import open_store
from everlong.store.sqlite.threads import SqliteThreads
from tests.cli.running import Ran, everlong
from tests.store.contract.entries import talk

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Sessions that changed so many days ago, by their ids; two are archived."""
    path = tmp_path / "threads.db"
    days = {"old": 100, "old~2": 40, "new": 1, "bob-old": 100, "bob-new": 1}
    for name, ago in days.items():
        with SqliteThreads(path, clock=lambda ago=ago: NOW - timedelta(days=ago)) as threads:  # type: ignore[misc]
            threads.create(name, owner="bob" if name.startswith("bob") else "ann", title=f"Title of {name}\x1b[31m")
            threads.append(name, talk(2, "walrus"))
            if name in ("old", "new"):
                threads.change(name, archived=True)
    return f"sqlite:///{path}"


def remove(*arguments: str, store: str, answer: str = "", language: str = "en") -> Ran:
    return everlong("sessions", "remove", *arguments, "--store", store, "--lang", language, stdin=answer.encode())


def left(store: str) -> set[str]:
    with open_store(store) as threads:
        return {thread.id for thread in threads.threads(archived=None)}


ALL = {"old", "old~2", "new", "bob-old", "bob-new"}


def test_it_names_what_goes_and_asks(store: str) -> None:
    ran = remove("new", "bob-new", store=store, answer="y\n")
    assert ran.code == 0
    assert ran.out.splitlines() == ["Deleted: Title of new", "Deleted: Title of bob-new"]
    assert "  new  Title of new  4 messages" in ran.err
    assert "Delete 2 sessions and all their messages? This cannot be undone [y/N]: " in ran.err
    assert "\x1b" not in ran.out + ran.err
    assert left(store) == ALL - {"new", "bob-new"}
    with open_store(store) as threads:
        assert {hit.thread for hit in threads.search("walrus", limit=100)} == left(store)


@pytest.mark.parametrize("answer", ["n\n", "\n", "no\n", ""], ids=["n", "return", "no", "nobody there"])
def test_who_does_not_agree_keeps_everything(store: str, answer: str) -> None:
    ran = remove("new", store=store, answer=answer)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.endswith("stopped\n")
    assert left(store) == ALL


def test_yes_does_not_ask(store: str) -> None:
    ran = remove("old", "old", "--yes", store=store)
    assert (ran.code, ran.out, ran.err) == (0, "Deleted: Title of old\n", "")
    assert left(store) == ALL - {"old"}


def test_unasked_the_beginning_of_an_id_is_not_enough(store: str) -> None:
    remove("old", "--yes", store=store)
    ran = remove("new", "old", "--yes", store=store)
    assert ran.code == 1
    assert ran.err == "everlong: no session 'old': with --yes an id must be complete, such as 'old~2'\n"
    assert left(store) == ALL - {"old"}, "neither its branch nor the session that was named beside it"
    assert remove("old", store=store, answer="y\n").out == "Deleted: Title of old~2\n"


def test_an_unknown_session_is_one_clear_line_and_nothing_goes(store: str) -> None:
    for more in ((), ("--yes",)):
        ran = remove("new", "nobody", *more, store=store)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == "everlong: there is no session 'nobody': `everlong sessions list` shows all\n"
    assert left(store) == ALL


OLD = {
    "of all": (("--older", "30"), {"old", "old~2", "bob-old"}),
    "of an owner": (("--older", "30", "--owner", "ann"), {"old", "old~2"}),
    "older still": (("--older", "99"), {"old", "bob-old"}),
    "none so old": (("--older", "101"), set[str]()),
    "of nobody": (("--older", "1", "--owner", "eve"), set[str]()),
}


@pytest.mark.parametrize(("arguments", "gone"), OLD.values(), ids=OLD)
def test_all_that_did_not_change_for_days(store: str, arguments: tuple[str, ...], gone: set[str]) -> None:
    ran = remove(*arguments, "--yes", store=store)
    assert ran.code == 0
    assert left(store) == ALL - gone
    told = {f"Deleted: Title of {name}" for name in gone} or {"There is nothing to delete."}
    assert set(ran.out.splitlines()) == told


def test_json_says_what_went(store: str) -> None:
    gone = json.loads(remove("--older", "30", "--owner", "bob", "--yes", "--json", store=store).out)
    assert [(one["id"], one["messages"]) for one in gone] == [("bob-old", 4)]
    assert json.loads(remove("--older", "30", "--owner", "bob", "--json", store=store).out) == []
    asked = remove("new", "--json", store=store, answer="y\n")
    assert [one["id"] for one in json.loads(asked.out)] == ["new"]


def test_in_chinese(store: str) -> None:
    ran = remove("new", store=store, answer="y\n", language="zh")
    assert ran.out == "已删除：Title of new\n"
    assert "删除 1 个会话及其全部消息？删除后无法恢复" in ran.err
    assert remove("--older", "900", store=store, language="zh").out == "没有可删除的会话。\n"


def test_many_are_not_all_named(tmp_path: Path) -> None:
    store = f"jsonl:{tmp_path}"
    with open_store(store) as threads:
        for number in range(23):
            threads.create(f"t{number}")
    ran = remove(*(f"t{number}" for number in range(23)), store=store, answer="y\n")
    assert "… and 3 more" in ran.err
    assert len(ran.out.splitlines()) == 23
    assert left(store) == set()


USAGE = {
    "nothing named": (),
    "both": ("new", "--older", "3"),
    "an owner alone": ("--owner", "ann"),
    "an owner and a session": ("new", "--owner", "ann"),
    "no days": ("--older", "0"),
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_wrong_usage_removes_nothing(store: str, arguments: tuple[str, ...]) -> None:
    ran = remove(*arguments, "--yes", store=store)
    assert ran.code == 2
    assert everlong("sessions", "remove", "--older", "9" * 20).err.count("\n") == 1
    assert left(store) == ALL
