"""Who is not answered, and what does no harm: other sites and names, broken bodies, tricks in paths, passwords."""

import json
from pathlib import Path

import pytest

from everlong.web.api.guard import Guard, is_loopback
from everlong.web.live.hub import sse
from everlong.web.state.settings import OWNER
from tests.web.running import an_app

OWN = {"x-everlong": "page"}
#: Headers of a request that would make a thread, and the status it gets.
WHO: dict[str, tuple[dict[str, str], int]] = {
    "the page": (OWN, 201),
    "the page, with its origin": (OWN | {"origin": "http://127.0.0.1:PORT", "host": "127.0.0.1:PORT"}, 201),
    "by another name of this machine": (OWN | {"host": "localhost:PORT", "origin": "http://localhost:PORT"}, 201),
    "no header": ({}, 403),
    "another header": ({"x-everlong": "form"}, 403),
    "another site": (OWN | {"origin": "https://evil.example"}, 403),
    "another port": (OWN | {"origin": "http://127.0.0.1:1"}, 403),
    "a sandboxed frame": (OWN | {"origin": "null"}, 403),
    "a browser that says so": (OWN | {"sec-fetch-site": "cross-site"}, 403),
    "the same site, another port": (OWN | {"sec-fetch-site": "same-site"}, 403),
    "a name that was bound anew": (OWN | {"host": "evil.example:PORT", "origin": "http://evil.example:PORT"}, 403),
    "no name": (OWN | {"host": ""}, 403),
    "a broken name": (OWN | {"host": "[::1"}, 403),
}


def test_only_the_own_page_may_change_anything() -> None:
    with an_app() as (app, _):
        page = app.page()
        told = {}
        for name, (headers, _status) in WHO.items():
            filled = {key: value.replace("PORT", str(app.port)) for key, value in headers.items()}
            told[name] = page.raw("POST", "/api/threads", b"{}", filled)[0]
        assert told == {name: status for name, (_, status) in WHO.items()}
        assert len(page.get("/api/threads")["threads"]) == 3


def test_names_that_were_bound_anew_read_nothing() -> None:
    with an_app() as (app, _):
        for path in ("/api/state", "/api/threads", "/api/settings", "/"):
            status, body, _ = app.page().raw("GET", path, None, {"host": "evil.example"})
            assert status == 403, path
            assert b"models" not in body


BODIES: dict[str, tuple[bytes, int]] = {
    "no JSON": (b"{", 400),
    "half a character": (b'{"title": "\xff"}', 400),
    "a list": (b"[]", 400),
    "a text": (b'"x"', 400),
    "nested for ever": (b"[" * 200_000, 400),
    "too large": (b" " * (1024 * 1024 + 1), 413),
    "a number for a title": (b'{"title": 1}', 400),
    "a title without end": (json.dumps({"title": "x" * 201}).encode(), 400),
    "archived in words": (b'{"archived": "yes"}', 400),
    "a way that is none": (b'{"auto": "maybe"}', 400),
    "a model that is not there": (b'{"model": "nobody/none"}', 409),
    "a model without a source": (b'{"model": "gpt-4o"}', 409),
    "half a surrogate": (b'{"title": "\\ud83d"}', 200),
}


def test_broken_bodies_are_refused_with_a_reason() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        told = {}
        for name, (body, _status) in BODIES.items():
            status, answer, _ = page.raw("PATCH", f"/api/threads/{thread}", body)
            told[name] = status
            if status != 200:
                assert json.loads(answer)["error"]["message"], name
        assert told == {name: status for name, (_, status) in BODIES.items()}


UNKNOWN = [
    ("GET", "/api/threads/{t}"),
    ("GET", "/api/threads/{t}/rows"),
    ("GET", "/api/threads/{t}/context"),
    ("GET", "/api/threads/{t}/events"),
    ("GET", "/api/threads/{t}/rows/0/why"),
    ("GET", "/api/threads/{t}/original/0123456789abcdef"),
    ("GET", "/api/threads/{t}/pins"),
    ("PATCH", "/api/threads/{t}"),
    ("DELETE", "/api/threads/{t}"),
    ("POST", "/api/threads/{t}/branch"),
    ("POST", "/api/threads/{t}/turn"),
    ("POST", "/api/threads/{t}/stop"),
    ("POST", "/api/threads/{t}/retry"),
    ("POST", "/api/threads/{t}/regenerate"),
    ("POST", "/api/threads/{t}/compact"),
    ("POST", "/api/threads/{t}/undo"),
    ("POST", "/api/threads/{t}/answer"),
    ("POST", "/api/threads/{t}/pins"),
    ("DELETE", "/api/threads/{t}/pins/x"),
    ("POST", "/api/threads/{t}/recall"),
]


def test_threads_that_are_not_there_or_of_others_are_not_found() -> None:
    with an_app() as (app, _):
        page = app.page()
        app.state.threads.create("a-clients-own", owner="somebody")
        app.state.threads.create("mine", owner=OWNER)
        for method, path in UNKNOWN:
            for thread in ("nothing", "a-clients-own", "%2e%2e", "%00"):
                body = None if method == "GET" else b'{"text": "x", "words": "x", "id": "x", "yes": true, "order": 0}'
                status, answer, _ = page.raw(method, path.replace("{t}", thread), body)
                assert status == 404, (method, path, thread, answer)
        assert app.state.threads.thread("a-clients-own").length == 0


QUERIES = ["limit=x", "limit=-1", "before=1e9", "before=%D9%A3", "point=99999999999999", "limit=1.5"]


@pytest.mark.parametrize("query", QUERIES)
def test_numbers_that_are_none_are_refused(query: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        status, told = page.ask("GET", f"/api/threads/{page.thread()}/rows?{query}")
        assert status == 400
        assert told["error"]["kind"] == "input"


FILES = {
    "/": 200,
    "/index.html": 200,
    "/assets/app-1a2b.js": 200,
    "/assets/": 404,
    "/assets/../secret.txt": 404,
    "/assets/%2e%2e/%2e%2e/secret.txt": 404,
    "/assets/..%2f..%2fsecret.txt": 404,
    "/..%2fsecret.txt": 404,
    "/secret.txt": 404,
    "/assets//app-1a2b.js": 404,
    "/assets/app-1a2b.js%00.png": 404,
    "/.built-from": 404,
    "/link.txt": 404,
}


def test_only_files_that_were_built_are_served(tmp_path: Path) -> None:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html>the page", encoding="utf-8")
    (built / "assets" / "app-1a2b.js").write_text("export {}", encoding="utf-8")
    (built / ".built-from").write_text("x", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (built / "link.txt").symlink_to(tmp_path / "secret.txt")
    with an_app(built=built) as (app, _):
        page = app.page()
        told = {path: page.raw("GET", path)[0] for path in FILES}
        assert told == FILES
        assert page.raw("GET", "/")[2]["cache-control"] == "no-cache"
        assert "immutable" in page.raw("GET", "/assets/app-1a2b.js")[2]["cache-control"]


def test_a_page_that_is_not_built_says_so(tmp_path: Path) -> None:
    with an_app(built=tmp_path / "nothing") as (app, _):
        status, body, _ = app.page().raw("GET", "/")
        assert status == 503
        assert b"everlong.web.build" in body


def test_every_answer_carries_the_headers_that_keep_browsers_safe() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        for path in ("/", "/assets/none.js", "/api/state", f"/api/threads/{thread}/rows", "/api/threads/none"):
            headers = page.raw("GET", path)[2]
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "access-control-allow-origin" not in headers
        assert page.raw("GET", "/api/state")[2]["cache-control"] == "no-store"


HOSTS = {"127.0.0.1": True, "localhost": True, "::1": True, "127.9.9.9": True, "0.0.0.0": False, "::": False, "": False}


@pytest.mark.parametrize("host", HOSTS)
def test_beyond_this_machine_a_password_is_needed(host: str) -> None:
    assert is_loopback(host) is HOSTS[host]
    assert bool(Guard.listening_at(host).password) is not HOSTS[host]
    assert Guard.listening_at(host, "chosen").password == "chosen"


def test_nothing_is_told_before_the_login() -> None:
    guard = Guard(password="open sesame")
    with an_app(guard=guard) as (app, _):
        page = app.page()
        assert page.ask("GET", "/api/state") == (401, {"error": {"kind": "login", "message": "log in first"}})
        assert page.raw("POST", "/api/threads", b"{}")[0] == 401
        assert page.raw("POST", "/api/login", b'{"password": "open sesame"}', {})[0] == 403
        assert page.ask("POST", "/api/login", {"password": "wrong"})[0] == 401
        assert page.ask("POST", "/api/login", {"password": 7})[0] == 400
        _, _, headers = page.raw("POST", "/api/login", b'{"password": "open sesame"}')
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        page.headers["cookie"] = cookie.partition(";")[0]
        assert page.ask("GET", "/api/state")[0] == 200
        page.do("POST", "/api/logout")
        assert page.ask("GET", "/api/state")[0] == 401
        assert "open sesame" not in repr(guard)


def test_guessing_passwords_ends() -> None:
    with an_app(guard=Guard(password="open sesame")) as (app, _):
        page = app.page()
        told = [page.ask("POST", "/api/login", {"password": f"guess {number}"})[0] for number in range(12)]
        assert told == [401] * 10 + [429] * 2
        assert page.ask("POST", "/api/login", {"password": "open sesame"})[0] == 429


def test_words_cannot_end_an_event_of_the_stream() -> None:
    hostile = {"type": "said", "text": 'a\n\ndata: {"type":"moved"}\r\nid: 7'}
    lines = sse(hostile, "r-1").split("\n")
    assert len(lines) == 4
    assert json.loads(lines[1].removeprefix("data: ")) == hostile
