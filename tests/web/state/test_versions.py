"""Versions: where they part, which one is shown, and that none is lost."""

from typing import Any

from hypothesis import given, strategies as st

from everlong.llm import Answer, in_turn
from everlong.store import MemoryThreads
from everlong.web.state.versions import Family, Member, Versions
from tests.web.running import Page, an_app

API = "/everlong/api/threads"


def until_done(page: Page, thread: str) -> None:
    with page.listen(thread) as stream:
        stream.wait(lambda event: event["type"] == "running" and not event["running"])


def marks(page: Page, thread: str) -> dict[int, Any]:
    return {row["order"]: row["versions"] for row in page.rows(thread) if row["versions"]}


def test_an_answer_again_and_an_edit_are_versions_in_place() -> None:
    answers = [Answer(text=text) for text in ("first", "second", "third", "to the edit")]
    with an_app(in_turn(answers)) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "tell me")
        with page.listen(thread) as stream:
            again = page.do("POST", f"{API}/{thread}/regenerate")["id"]
            assert stream.until("moved")[-1]["thread"] == again
        until_done(page, again)
        third = page.do("POST", f"{API}/{again}/regenerate")["id"]
        until_done(page, third)
        assert [row["text"] for row in page.rows(third)][1:] == ["tell me", "third"]
        for at, name in enumerate((thread, again, third)):
            assert marks(page, name) == {2: {"at": at, "threads": [thread, again, third]}}
        edited = page.do("POST", f"{API}/{thread}/turn", {"text": "tell me more", "instead_of": 1})["thread"]
        until_done(page, edited)
        assert [row["text"] for row in page.rows(edited)][1:] == ["tell me more", "to the edit"]
        assert [message.text for message in server.requests[-1].messages][1:] == ["tell me more"]
        assert marks(page, edited) == {1: {"at": 1, "threads": [third, edited]}}
        assert marks(page, thread)[1] == {"at": 0, "threads": [thread, edited]}
        assert [row["id"] for row in page.get(API)["threads"]] == [edited]
        assert page.get(f"{API}?archived=1")["threads"] == []
        page.do("POST", f"{API}/{again}/show")
        assert [row["id"] for row in page.get(API)["threads"]] == [again]
        assert marks(page, edited) == {1: {"at": 1, "threads": [again, edited]}}
        page.do("DELETE", f"{API}/{again}")
        assert [page.ask("GET", f"{API}/{name}")[0] for name in (thread, again, third, edited)] == [404] * 4


def test_a_version_without_an_answer_yet_can_be_left_again() -> None:
    with an_app(in_turn([Answer(text="first"), Answer(text="")])) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "tell me")
        version = app.state.threads.branch(thread, 2, "version").id
        app.state.versions.add(thread, 2, version)
        assert marks(page, version) == {1: {"at": 1, "threads": [thread, version]}}


def test_a_branch_of_a_version_is_a_conversation_of_its_own() -> None:
    with an_app(in_turn([Answer(text="first"), Answer(text="second")])) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "tell me")
        again = page.do("POST", f"{API}/{thread}/regenerate")["id"]
        until_done(page, again)
        branch = page.do("POST", f"{API}/{again}/branch", {"order": 2})["id"]
        assert {row["id"] for row in page.get(API)["threads"]} == {again, branch}
        assert marks(page, branch) == {}
        page.do("PATCH", f"{API}/{again}", {"archived": True})
        page.do("POST", f"{API}/{thread}/show")
        assert [row["id"] for row in page.get(f"{API}?archived=1")["threads"]] == [thread]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=8))
def test_forks_are_where_the_rows_differ(branches: list[tuple[int, int]]) -> None:
    """Rows are compared one by one: what the family computes from its tree is the same."""
    logs: dict[str, list[str]] = {"t0": [f"t0:{row}" for row in range(14)]}
    members = [Member("t0")]
    for at, (parent, shared) in enumerate(branches, 1):
        name, of = f"t{at}", f"t{parent % at}"
        kept = logs[of][:shared]
        logs[name] = kept + [f"{name}:{row}" for row in range(len(kept), 14)]
        members.append(Member(name, of, len(kept)))
    family = Family(tuple(members), members[-1].thread)
    for name, log in logs.items():
        expected: dict[int, set[str]] = {}
        for other, rows in logs.items():
            if other != name:
                same = next((row for row, (a, b) in enumerate(zip(log, rows, strict=False)) if a != b), len(log))
                expected.setdefault(same, set()).add(rows[same] if same < len(rows) else "")
        forks = family.forks(name)
        assert set(forks) == set(expected)
        for row, threads in forks.items():
            assert name in threads
            others = [logs[thread][row] for thread in threads if thread != name]
            assert sorted(others) == sorted(expected[row]), "each version once"


def test_a_family_survives_the_program_and_damage() -> None:
    threads = MemoryThreads()
    threads.create("a")
    versions = Versions(threads)
    threads.branch("a", 0, "b")
    versions.add("a", 0, "b")
    again = Versions(threads)
    assert again.of("b") == versions.of("a")
    threads.remove("a")
    assert [member.thread for member in Versions(threads).of("b").members] == ["b"]
    threads.keep_fact("versions", "a", "{not json")
    assert Versions(threads).of("b").shown == "a"
