"""Two users of one app never see anything of each other: not by any route, whatever id they know."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import Message, Role, Text
from everlong.engine import Threads
from everlong.errors import EverlongError, NoThread
from everlong.llm import Answer, ScriptedServer
from everlong.store import MemoryThreads
from everlong.web import Guard, ProxyUsers, web_routes
from everlong.web.users.members import MemberThreads
from tests.attack.fuzz_app import PAGES, STREAMS
from tests.gateway.processes import ServingProcess
from tests.web.running import PAGE, Page, RunningApp, an_app
from tests.web.users.houses import user_apps

API = "/everlong/api"
HEADER = "x-forwarded-user"
PROXY = ProxyUsers(HEADER, ("127.0.0.1",))
#: What each method needs to be sent so that a request of the owner would do something.
BODY = {
    "text": "mine now",
    "title": "mine now",
    "order": 1,
    "words": "harbour",
    "id": "question-1",
    "answer": "once",
    "focus": "",
    "thread": "THREAD",
    "grant": "command",
    "system": "say so",
}


def page_of(app: RunningApp, user: str) -> Page:
    return Page(app.port, {**PAGE, HEADER: user})


def routes_with_a_thread(app: RunningApp) -> list[tuple[str, str]]:
    table = web_routes(app.state, Guard())
    return [
        (method, route.path)
        for route in table
        for method in sorted(route.methods or ())
        if "{thread}" in route.path and method != "HEAD"
    ]


def test_no_route_gives_or_changes_anything_of_another_user() -> None:
    with an_app(lambda _: Answer(text="The harbour closes at nine."), guard=Guard(proxy=PROXY), apps=user_apps) as (
        app,
        server,
    ):
        ada, bob = page_of(app, "ada"), page_of(app, "bob")
        thread = ada.thread("The harbour")
        ada.say(thread, "When does the harbour close?")
        ada.do("POST", f"{API}/threads/{thread}/pins", {"order": 1})
        before = (ada.rows(thread), ada.get(f"{API}/threads/{thread}"), len(server.requests))
        for method, template in routes_with_a_thread(app):
            path = template.replace("{thread}", thread).replace("{order:int}", "1").replace("{ref}", "abc")
            path = path.replace("{pin}", "1").replace("{change}", "1")
            body = json.dumps(BODY).replace("THREAD", thread).encode() if method != "GET" else None
            status, told, _ = bob.raw(method, path, body)
            assert status == 404, (method, template, told)
            assert json.loads(told)["error"]["kind"] == "no_thread", (method, template)
            assert b"harbour" not in told.lower(), (method, template)
        assert (ada.rows(thread), ada.get(f"{API}/threads/{thread}"), len(server.requests)) == before


def test_lists_searches_exports_usage_and_streams_are_each_users_own() -> None:
    with an_app(lambda _: Answer(text="At nine."), guard=Guard(proxy=PROXY), apps=user_apps) as (app, _):
        ada, bob = page_of(app, "ada"), page_of(app, "bob")
        thread = ada.thread("The harbour")
        own = bob.thread("Bob's own")
        ada.say(thread, "When does the harbour close?")
        ada.do("POST", f"{API}/folders", {"name": "Boats"})
        ada.do("PUT", f"{API}/settings", {"threshold": 55})
        ada.do("POST", f"{API}/assistants", {"name": "Pilot"})
        ada.do("POST", f"{API}/prompts", {"title": "Ask", "text": "ahoy"})
        ada.do("PUT", f"{API}/favourites", {"model": "main/scripted", "on": True})
        assert [one["id"] for one in bob.get(f"{API}/threads")["threads"]] == [own]
        assert bob.get(f"{API}/threads?q=harbour") == {"threads": [], "hits": [], "warnings": []}
        assert ada.get(f"{API}/threads?q=harbour")["hits"]
        assert bob.get(f"{API}/threads?shelf=1")["folders"] == []
        assert bob.get(f"{API}/settings")["threshold"] != 55
        kept = bob.get(f"{API}/kept")
        assert (kept["assistants"], kept["prompts"], kept["favourites"]) == ([], [], [])
        assert b"harbour" not in bob.raw("GET", f"{API}/export?format=everlong&thread={thread}")[1].lower()
        assert not [one for one in bob.get(f"{API}/usage")["threads"] if one["thread"] == thread]
        assert bob.do("POST", f"{API}/chosen", {"threads": [thread], "delete": True}) == {"changed": 0}
        # A stream of many threads leaves out what is another's.
        with Page.listen(bob, own) as stream, ada.listen(thread) as hers:
            ada.do("POST", f"{API}/threads/{thread}/turn", {"text": "and tomorrow?"})
            hers.until("ended")
            bob.do("POST", f"{API}/threads/{own}/turn", {"text": "hello"})
            assert "tomorrow" not in json.dumps(stream.until("ended"))
        assert (ada.get(f"{API}/state")["user"], bob.get(f"{API}/state")["user"]) == ("ada", "bob")
        assert len(ada.rows(thread)) == 5


def test_two_users_may_bring_in_the_same_file(tmp_path: Path) -> None:
    with an_app(lambda _: Answer(text="At nine."), guard=Guard(proxy=PROXY), apps=user_apps) as (app, _):
        ada, bob = page_of(app, "ada"), page_of(app, "bob")
        thread = ada.thread("The harbour")
        ada.say(thread, "When?")
        file = ada.raw("GET", f"{API}/threads/{thread}/export?format=everlong")[1]
        told = {
            name: [
                json.loads(line)
                for _ in range(2)
                for line in page.raw("POST", f"{API}/import?name=harbour.json", file)[1].splitlines()
            ]
            for name, page in (("ada", ada), ("bob", bob))
        }
        assert [event["known"] for event in told["ada"] if event["type"] == "done"] == [1, 1]
        assert [(event["new"], event["known"]) for event in told["bob"] if event["type"] == "done"] == [(1, 0), (0, 1)]
        (his,) = bob.get(f"{API}/threads")["threads"]
        bob.do("DELETE", f"{API}/threads/{his['id']}")
        assert len(ada.rows(thread)) == 3


def test_tools_are_off_for_users_unless_they_are_allowed_and_sources_need_a_vault() -> None:
    def no_tools(setup: Any) -> Any:
        from dataclasses import replace  # noqa: PLC0415

        return user_apps(replace(setup, tools=False))

    with an_app(lambda _: Answer(text="Yes."), guard=Guard(proxy=PROXY), apps=no_tools) as (app, server):
        ada = page_of(app, "ada")
        ada.do("PUT", f"{API}/settings", {"tools": True})
        thread = ada.thread()
        ada.do("PUT", f"{API}/threads/{thread}/options", {"tools": True})
        ada.say(thread, "run something")
        assert "tools" not in json.loads(server.requests[-1].body)
        assert ada.get(f"{API}/state")["tools_allowed"] is False
        refused = ada.ask("POST", f"{API}/sources", {"url": "https://models.example/v1", "key": "sk-mine"})
        assert (refused[0], refused[1]["error"]["kind"]) == (409, "no_vault")


#: The header as it comes, and who is let in.
NAMED: dict[str, tuple[dict[str, str], int]] = {
    "a user": ({HEADER: "ada"}, 200),
    "nobody": ({}, 401),
    "a blank": ({HEADER: "  "}, 401),
    "too long": ({HEADER: "a" * 400}, 401),
    "not to be printed": ({HEADER: "a\xadb"}, 401),
}


def test_only_the_proxy_names_users() -> None:
    with an_app(guard=Guard(proxy=PROXY), apps=user_apps) as (app, _):
        told = {
            name: Page(app.port, {**PAGE, **given}).raw("GET", f"{API}/threads")[0]
            for name, (given, _) in NAMED.items()
        }
        assert told == {name: status for name, (_, status) in NAMED.items()}
    elsewhere = Guard(proxy=ProxyUsers(HEADER, ("10.0.0.7", "192.168.0.0/16")))
    with an_app(guard=elsewhere, apps=user_apps) as (app, _):
        for method, path in (("GET", "/state"), ("GET", "/threads"), ("POST", "/threads"), ("POST", "/login")):
            status, told_, _ = Page(app.port, {**PAGE, HEADER: "ada"}).raw(method, API + path, b"{}")
            assert (status, json.loads(told_)["error"]["kind"]) == (403, "proxy"), path


def test_a_server_with_a_proxy_keeps_its_users_apart(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text('trusted_proxies = ["127.0.0.1"]\naccess_log = false\n[users]\nby = "proxy"\n')
    with ScriptedServer(lambda _: Answer(text="At nine.")) as model:
        options = ("--config", "serve.toml", "--upstream", model.url, "--store", str(tmp_path / "threads.db"))
        with ServingProcess(*options, folder=tmp_path) as serving:
            ada, bob = (Page(serving.port, {**PAGE, HEADER: name}) for name in ("ada", "bob"))
            thread = ada.thread()
            ada.say(thread, "When?")
            assert bob.ask("GET", f"{API}/threads/{thread}/rows")[0] == 404
            assert bob.get(f"{API}/threads")["threads"] == []
            assert Page(serving.port).ask("GET", f"{API}/state")[0] == 401
            assert bob.raw("GET", f"{API}/live")[0] == 403


def test_the_routes_without_a_thread_are_known() -> None:
    """A new route without a thread in it belongs to a user too: whoever adds one adds it to the tests above."""
    with an_app() as (app, _):
        table = {route.path for route in web_routes(app.state, Guard()) if "{thread}" not in route.path}
    ours = {path.removeprefix(API) for path in table if path.startswith(API)} - set(STREAMS)
    assert table - {API + path for path in ours} <= {*PAGES, "/assets/{file:path}", "/{name}", *STREAMS}
    assert ours == {
        *("/state", "/settings", "/sources", "/sources/{name}", "/sample", "/local", "/usage", "/live", "/events"),
        *("/threads", "/export", "/folders", "/chosen", "/attachments", "/import", "/login", "/logout", "/sign-in"),
        *("/kept", "/assistants", "/assistants/{name}", "/prompts", "/prompts/import", "/prompts/{name}"),
        *("/favourites", "/permissions", "/permissions/revoke"),
    }


def two_members() -> tuple[Threads, Threads, Threads]:
    store = MemoryThreads()
    return store, MemberThreads(store, "app/ada"), MemberThreads(store, "app/bob")


#: Every way to a thread, as another user tries it.
WAYS: dict[str, Any] = {
    "thread": lambda threads: threads.thread("t"),
    "change": lambda threads: threads.change("t", title="mine"),
    "branch": lambda threads: threads.branch("t", 1, "new"),
    "remove": lambda threads: threads.remove("t"),
    "append": lambda threads: threads.append("t", [Message(Role.USER, (Text("x"),))]),
    "read": lambda threads: list(threads.read("t")),
    "last": lambda threads: threads.last("t", 1),
    "row": lambda threads: threads.row("t", "r"),
    "open": lambda threads: threads.open("t"),
    "points": lambda threads: threads.points("t"),
    "erase": lambda threads: threads.erase("t", [0]),
    "pin": lambda threads: threads.pin("t", 0),
    "unpin": lambda threads: threads.unpin("t", "p"),
    "pins": lambda threads: threads.pins("t"),
    "record": lambda threads: threads.record("t", []),
    "events": lambda threads: threads.events("t"),
    "unfinished": lambda threads: threads.unfinished("t"),
    "original": lambda threads: threads.original("t", "r"),
    "search": lambda threads: threads.search("harbour", thread="t"),
    "vectors": lambda threads: threads.vectors("t", "m"),
    "keep_vectors": lambda threads: threads.keep_vectors("t", "m", {0: b"x"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_store_of_a_user_has_no_thread_of_another(way: str) -> None:
    store, ada, bob = two_members()
    ada.create("t", owner="app", title="The harbour")
    ada.append("t", [Message(Role.USER, (Text("the harbour"),))], ids=["r"])
    before = (store.thread("t"), list(store.read("t")))
    with pytest.raises(NoThread):
        WAYS[way](bob)
    assert (store.thread("t"), list(store.read("t"))) == before


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["create", "say", "fact"]), st.sampled_from("abc")), max_size=12)
)
def test_whatever_two_users_do_each_sees_what_each_alone_would_see(steps: list[tuple[bool, str, str]]) -> None:
    _, *members = two_members()
    alone: tuple[Threads, Threads] = (MemoryThreads(), MemoryThreads())
    taken: dict[str, bool] = {}
    for who, step, name in steps:
        if step != "fact" and taken.setdefault(name, who) is not who:
            continue  # ids are random: nobody meets another's
        for threads in (members[who], alone[who]):
            try:
                if step == "create":
                    threads.create(name, owner="app")
                elif step == "say":
                    threads.append(name, [Message(Role.USER, (Text(f"word {name} {who}"),))])
                else:
                    threads.keep_fact("kind", name, json.dumps(who))
            except EverlongError:
                continue
    for who in (False, True):
        seen, expected = members[who], alone[who]
        assert seen.facts("kind") == expected.facts("kind")
        found = [{(one.id, one.owner, one.length) for one in each.threads(archived=None)} for each in (seen, expected)]
        assert found[0] == found[1]
        hits = [{hit.row.entry for hit in each.search("word", owner="app")} for each in (seen, expected)]
        assert hits[0] == hits[1]
