"""Live requests of a gateway: everybody's where there are no keys, else those of the key that asks."""

from http.client import HTTPConnection
from pathlib import Path

from everlong.gateway import hashed
from tests.gateway.talking import PATHS, body_of
from tests.web.running import Page, Stream
from tests.web.sites import Site, a_server

ONE, OTHER = "el-" + "a" * 40, "el-" + "b" * 40


def say(port: int, key: str, model: str) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", PATHS["openai-chat"], body_of("openai-chat", model=model), {"x-api-key": key})
    connection.getresponse().read()
    connection.close()


def test_without_keys_the_app_shows_every_request(tmp_path: Path) -> None:
    with Site() as upstream, a_server(upstream, tmp_path) as server:
        page = Page(server.port)
        assert not page.get("/everlong/api/state")["live_by_key"]
        with Stream(page, "/everlong/api/live") as stream:
            say(server.port, "k1", "first")
            say(server.port, "k2", "second")
            told = stream.wait(lambda event: event.get("model") == "second")
        assert [event["model"] for event in told] == ["first", "second"]


def test_with_keys_each_key_watches_its_own_requests(tmp_path: Path) -> None:
    keys = [{"name": "one", "hash": hashed(ONE)}, {"name": "other", "hash": hashed(OTHER)}]
    with Site() as upstream, a_server(upstream, tmp_path, keys=keys) as server:
        page = Page(server.port)
        assert page.get("/everlong/api/state")["live_by_key"]
        assert page.ask("GET", "/everlong/api/live")[0] == 401
        page.headers["x-api-key"] = "el-wrong"
        assert page.ask("GET", "/everlong/api/live")[0] == 401
        page.headers["x-api-key"] = ONE
        with Stream(page, "/everlong/api/live") as stream:
            say(server.port, OTHER, "not for one")
            say(server.port, ONE, "for one")
            told = stream.wait(lambda event: event.get("model") == "for one")
        assert [event["model"] for event in told] == ["for one"]
