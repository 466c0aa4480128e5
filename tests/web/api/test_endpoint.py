"""Requests that make no sense: broken bodies, threads that are not there, numbers that are none."""

import json

import pytest

from everlong.web.state.settings import OWNER
from tests.web.running import an_app

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
            status, answer, _ = page.raw("PATCH", f"/everlong/api/threads/{thread}", body)
            told[name] = status
            if status != 200:
                assert json.loads(answer)["error"]["message"], name
        assert told == {name: status for name, (_, status) in BODIES.items()}


UNKNOWN = [
    ("GET", "/everlong/api/threads/{t}"),
    ("GET", "/everlong/api/threads/{t}/rows"),
    ("GET", "/everlong/api/threads/{t}/context"),
    ("GET", "/everlong/api/threads/{t}/events"),
    ("GET", "/everlong/api/threads/{t}/rows/0/why"),
    ("GET", "/everlong/api/threads/{t}/original/0123456789abcdef"),
    ("GET", "/everlong/api/threads/{t}/changes"),
    ("POST", "/everlong/api/threads/{t}/changes/x/restore"),
    ("GET", "/everlong/api/threads/{t}/pins"),
    ("PATCH", "/everlong/api/threads/{t}"),
    ("DELETE", "/everlong/api/threads/{t}"),
    ("POST", "/everlong/api/threads/{t}/branch"),
    ("POST", "/everlong/api/threads/{t}/turn"),
    ("POST", "/everlong/api/threads/{t}/stop"),
    ("POST", "/everlong/api/threads/{t}/retry"),
    ("POST", "/everlong/api/threads/{t}/regenerate"),
    ("POST", "/everlong/api/threads/{t}/compact"),
    ("POST", "/everlong/api/threads/{t}/undo"),
    ("POST", "/everlong/api/threads/{t}/answer"),
    ("POST", "/everlong/api/threads/{t}/pins"),
    ("DELETE", "/everlong/api/threads/{t}/pins/x"),
    ("POST", "/everlong/api/threads/{t}/recall"),
]


def test_threads_that_are_not_there_or_of_others_are_not_found() -> None:
    with an_app() as (app, _):
        page = app.page()
        app.state.threads.create("a-clients-own", owner="somebody")
        app.state.threads.create("mine", owner=OWNER)
        for method, path in UNKNOWN:
            for thread in ("nothing", "a-clients-own", "%2e%2e", "%00"):
                body = (
                    None if method == "GET" else b'{"text": "x", "words": "x", "id": "x", "answer": "no", "order": 0}'
                )
                status, answer, _ = page.raw(method, path.replace("{t}", thread), body)
                assert status == 404, (method, path, thread, answer)
        assert app.state.threads.thread("a-clients-own").length == 0


def test_nothing_of_the_app_is_where_ollamas_api_is() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        for path in ("/state", "/settings", "/threads", f"/threads/{thread}", "/live"):
            assert page.raw("GET", "/api" + path)[0] == 404, path
        assert page.get("/everlong/api/state")["version"]


QUERIES = ["limit=x", "limit=-1", "before=1e9", "before=%D9%A3", "point=99999999999999", "limit=1.5"]


@pytest.mark.parametrize("query", QUERIES)
def test_numbers_that_are_none_are_refused(query: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        status, told = page.ask("GET", f"/everlong/api/threads/{page.thread()}/rows?{query}")
        assert status == 400
        assert told["error"]["kind"] == "input"
