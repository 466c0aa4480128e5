"""Which servers a source may be, and that nobody learns from the app what listens near it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from itertools import chain, repeat
from pathlib import Path
from threading import Thread

import aiohttp
import pytest
from hypothesis import given, strategies as st

from everlong.store import MemoryThreads
from everlong.web.app import Setup
from everlong.web.state.reach import NEVER, Reach
from tests.web.running import Page, RunningApp, an_app
from tests.web.sites import Site

#: An address; whether a near app may use it, whether one that others reach may.
ADDRESSES: dict[str, tuple[bool, bool]] = {
    "127.0.0.1": (True, False),
    "::1": (True, False),
    "10.1.2.3": (True, False),
    "172.16.0.1": (True, False),
    "192.168.1.7": (True, False),
    "100.64.0.7": (True, False),
    "fd12:3456::1": (True, False),
    "::ffff:127.0.0.1": (True, False),
    "93.184.216.34": (True, True),
    "2606:2800:220:1::1": (True, True),
    "::ffff:93.184.216.34": (True, True),
    "169.254.169.254": (False, False),
    "169.254.0.7": (False, False),
    "::ffff:169.254.169.254": (False, False),
    "64:ff9b::a9fe:a9fe": (False, False),  # the same, translated
    "2002:a9fe:a9fe::1": (False, False),  # and tunnelled
    "fe80::1": (False, False),
    "fd00:ec2::254": (False, False),
    "fd20:ce::254": (False, False),
    "100.100.100.200": (False, False),
    "168.63.129.16": (False, False),
    "192.0.0.192": (False, False),
    "0.0.0.0": (False, False),
    "::": (False, False),
    "224.0.0.1": (False, False),
    "255.255.255.255": (False, False),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_sources_are_public_or_near_and_never_where_clouds_keep_secrets(address: str) -> None:
    assert tuple(Reach(near).allows(ip_address(address)) for near in (True, False)) == ADDRESSES[address]
    shown = f"[{address}]" if ":" in address else address
    urls = {near: Reach(near).allows_url(f"https://{shown}:8000/v1") for near in (True, False)}
    assert tuple(urls.values()) == ADDRESSES[address]
    assert not Reach(near=False).allows_url(f"http://{shown}/v1")


@given(
    st.sampled_from(NEVER).flatmap(lambda net: st.integers(int(net[0]), int(net[-1]))).map(ip_address),
    st.booleans(),
)
def test_nothing_leads_to_what_is_never_allowed(address: object, near: bool) -> None:
    assert not Reach(near).allows(ip_address(str(address)))


def test_other_ways_to_write_an_address_are_not_read() -> None:
    for host in ("127.1", "2130706433", "0177.0.0.1", "169.254.43518", "0"):
        assert not Reach(near=True).allows_url(f"https://{host}/v1"), host


def test_a_name_that_means_another_address_the_next_time_leads_nowhere() -> None:
    answers: Iterator[list[str]] = chain([["127.0.0.1"]], repeat(["169.254.169.254"]))

    async def resolve(_: str) -> list[str]:
        return next(answers)

    async def twice(port: int) -> list[int | str]:
        told: list[int | str] = []
        resolver = Reach(near=True).resolver(resolve)
        for _ in range(2):
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=resolver)) as session:
                try:
                    async with session.get(f"http://models.example:{port}/v1/models") as answer:
                        told.append(answer.status)
                except aiohttp.ClientConnectorError as error:
                    told.append(str(error.os_error))
        return told

    with Site() as site:
        assert asyncio.run(twice(site.port)) == [200, "its address is not allowed"]
        assert len(site.asked) == 1


def closing_port(stack: ExitStack) -> int:
    """A port where somebody takes connections and says nothing."""
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def close_all() -> None:
        while True:
            try:
                listening.accept()[0].close()
            except OSError:
                return

    Thread(target=close_all, daemon=True).start()
    return int(listening.getsockname()[1])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def added(page: Page, url: str) -> tuple[int, str]:
    status, told = page.ask("POST", "/everlong/api/sources", {"url": url, "name": "x", "key": "sk-1234567890"})
    return status, str(told.get("error", told).get("message"))


def test_nobody_learns_what_listens_where() -> None:
    json = {"content-type": "application/json"}
    with ExitStack() as stack:
        app, _ = stack.enter_context(an_app())
        page = app.page()
        site = stack.enter_context(Site())
        site.answers = {
            path + end: answer
            for end in ("/models", "/v1/models")  # an address without a version is tried with it
            for path, answer in {
                "/html": ({"content-type": "text/html"}, "<h1>Intranet</h1>"),
                "/object": (json, '{"secret": 1}'),
                "/text": (json, '"ami-id"'),
                "/broken": (json, "{"),
            }.items()
        }
        at = f"http://127.0.0.1:{site.port}"
        places = {
            "nothing there": f"http://127.0.0.1:{free_port()}/v1",
            "a port that closes": f"http://127.0.0.1:{closing_port(stack)}/v1",
            "a port that is no server": f"https://127.0.0.1:{site.port}/v1",
            **{name: f"{at}/{name}" for name in ("html", "object", "text", "broken")},
            "a cloud's metadata": "http://169.254.169.254/latest",
            "the same, otherwise": "http://[::ffff:169.254.169.254]/latest",
            "link-local": "http://[fe80::1]/v1",
            "a short form": "http://127.1/v1",
            "no such name": "http://nobody.invalid/v1",
        }
        told = {name: added(page, url) for name, url in places.items()}
        assert len(set(told.values())) == 1, told
        assert told["html"][0] == 422
        assert page.get("/everlong/api/sources")[1:] == []
        assert added(page, f"{at}/v1")[0] == 201  # and one that is there is added


def test_an_app_that_others_reach_asks_nothing_near_it(tmp_path: Path) -> None:
    with Site() as site:
        kept = tmp_path / "sources.json"
        kept.write_text(
            f'{{"sources": [{{"name": "old", "url": "http://127.0.0.1:{site.port}/v1"}}]}}', encoding="utf-8"
        )
        with RunningApp(Setup(threads=MemoryThreads(), near=False, sources_file=kept)) as app:
            page = app.page()
            for url in (f"http://127.0.0.1:{site.port}/v1", f"http://localhost:{site.port}/v1"):
                assert added(page, url)[0] == 422
                assert added(page, url.replace("http:", "https:"))[0] == 422
            page.get("/everlong/api/state")
            status, told = page.ask("POST", "/everlong/api/threads", {"model": "old/m"})
            assert (status, told["error"]["kind"]) == (409, "no_model")
        assert site.asked == []
