"""Who is not answered, and what does no harm: other sites and names, headers, passwords."""

import json
from ipaddress import ip_address

import pytest
from hypothesis import given, strategies as st

from everlong.errors import Refused
from everlong.web.api.guard import MOST_ADDRESSES, Guard, is_loopback
from everlong.web.live.hub import sse
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
            told[name] = page.raw("POST", "/everlong/api/threads", b"{}", filled)[0]
        assert told == {name: status for name, (_, status) in WHO.items()}
        assert len(page.get("/everlong/api/threads")["threads"]) == 3


def test_names_that_were_bound_anew_read_nothing() -> None:
    with an_app() as (app, _):
        for path in ("/everlong/api/state", "/everlong/api/threads", "/everlong/api/settings", "/"):
            status, body, _ = app.page().raw("GET", path, None, {"host": "evil.example"})
            assert status == 403, path
            assert b"models" not in body


def test_every_answer_carries_the_headers_that_keep_browsers_safe() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        for path in (
            "/",
            "/assets/none.js",
            "/everlong/api/state",
            f"/everlong/api/threads/{thread}/rows",
            "/everlong/api/threads/none",
        ):
            headers = page.raw("GET", path)[2]
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "access-control-allow-origin" not in headers
        assert page.raw("GET", "/everlong/api/state")[2]["cache-control"] == "no-store"


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
        assert page.ask("GET", "/everlong/api/state") == (401, {"error": {"kind": "login", "message": "log in first"}})
        assert page.raw("POST", "/everlong/api/threads", b"{}")[0] == 401
        assert page.raw("POST", "/everlong/api/login", b'{"password": "open sesame"}', {})[0] == 403
        assert page.ask("POST", "/everlong/api/login", {"password": "wrong"})[0] == 401
        assert page.ask("POST", "/everlong/api/login", {"password": 7})[0] == 400
        _, _, headers = page.raw("POST", "/everlong/api/login", b'{"password": "open sesame"}')
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        page.headers["cookie"] = cookie.partition(";")[0]
        assert page.ask("GET", "/everlong/api/state")[0] == 200
        page.do("POST", "/everlong/api/logout")
        assert page.ask("GET", "/everlong/api/state")[0] == 401
        assert "open sesame" not in repr(guard)


def test_guessing_passwords_ends() -> None:
    with an_app(guard=Guard(password="open sesame")) as (app, _):
        page = app.page()
        told = [page.ask("POST", "/everlong/api/login", {"password": f"guess {number}"})[0] for number in range(12)]
        assert told == [401] * 10 + [429] * 2
        assert page.ask("POST", "/everlong/api/login", {"password": "open sesame"})[0] == 429


def test_who_guesses_waits_ever_longer_and_nobody_else_does() -> None:
    now = 0.0
    guard = Guard(password="open sesame", clock=lambda: now)

    def waits(address: str, password: str = "wrong") -> int | None:
        """Seconds to wait for an address that tries; 0 if it was only wrong, None if it is in."""
        try:
            guard.log_in(password, address)
        except Refused as refused:
            return refused.after or 0
        return None

    assert [waits("10.0.0.8") for _ in range(10)] == [0] * 10
    told = []
    for _ in range(8):
        wait = waits("10.0.0.8", "open sesame")
        assert wait is not None
        told.append(wait)
        assert waits("10.0.0.9") == 0  # another address
        assert waits("10.0.0.9", "open sesame") is None
        now += wait
        assert waits("10.0.0.8") == 0
    assert told == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    now += 3600
    assert waits("10.0.0.8", "open sesame") is None
    assert waits("10.0.0.8") == 0  # forgiven
    # Addresses of one IPv6 network are one.
    assert [waits(f"2001:db8::{number:x}") for number in range(10)] == [0] * 10
    assert waits("2001:db8::ffff") == 60
    assert waits("2001:db8:0:1::1") == 0


@given(st.lists(st.integers(0, 2**32 - 1), max_size=60))
def test_what_is_remembered_of_guesses_is_bounded(numbers: list[int]) -> None:
    guard = Guard(password="open sesame")
    for number in (*range(MOST_ADDRESSES), *numbers):
        with pytest.raises(Refused):
            guard.log_in("wrong", str(ip_address(number)))
    assert len(guard._failures) <= MOST_ADDRESSES


def test_words_cannot_end_an_event_of_the_stream() -> None:
    hostile = {"type": "said", "text": 'a\n\ndata: {"type":"moved"}\r\nid: 7'}
    lines = sse(hostile, "r-1").split("\n")
    assert len(lines) == 4
    assert json.loads(lines[1].removeprefix("data: ")) == hostile
