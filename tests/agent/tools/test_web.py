"""Reading the web: a real server on this machine, which the tool reaches only where a test allows its address."""

import asyncio
import gzip
import ipaddress
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from everlong.agent.definitions import Outcome, Place
from everlong.agent.tools.page_text import Page, text_of_page
from everlong.agent.tools.web import Address, FetchLimits, addresses_of, fetch_tool, is_public, resolve_by_system
from everlong.errors import InputError

PLACE = Place(thread="t", call="c", workspace=Path())
NAMES = {
    "site.test": ["127.0.0.1"],
    "inner.test": ["127.0.0.2"],
    "both.test": ["127.0.0.1", "10.0.0.1"],
    "none.test": [],
}
HTML = """<html><head><title>标题</title><style>p{}</style></head><body><script>evil()</script>
<h1>Heading</h1><p>One  two
three <a href="/next?a=1">next</a> <a href="javascript:x()">no</a></p>
<ul><li>first<li>second</ul><pre>a  b
  c</pre><table><tr><td>1</td><td>2</td></tr></table>&lt;b&gt; \x1b[31m</body></html>"""


async def resolve(host: str) -> list[str]:
    return NAMES[host] if host in NAMES else await resolve_by_system(host)


def only_this_one(address: Address) -> bool:
    return str(address) == "127.0.0.1"


def answer(body: str | bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> Callable[[], web.Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body.encode() if isinstance(body, str) else body
    return lambda: web.Response(body=content, headers={"Content-Type": kind, **named})


ANSWERS = {
    "html": answer(HTML, "text/html; charset=utf-8"),
    "gbk": answer('<meta charset="gbk"><p>你好，世界</p>'.encode("gbk"), "text/html"),
    "json": answer('{"a": "你好"}', "application/json"),
    "binary": answer(bytes(100), "application/octet-stream"),
    "missing": lambda: web.Response(status=404, text="not here"),
    "large": answer("x" * 300_000),
    "lines": answer("".join(f"{number}\n" for number in range(20_000))),
    "bomb": answer(gzip.compress(bytes(50_000_000)), Content_Encoding="gzip"),
    "packed": answer(gzip.compress("压缩".encode()), Content_Encoding="gzip"),
    "odd": answer("x", Content_Encoding="secret"),
}


async def page(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name == "hangs":
        await asyncio.Event().wait()
    if name == "host":
        return web.Response(text=f"{request.host.partition(':')[0]} {request.headers.get('Cookie')}")
    if name in ANSWERS:
        return ANSWERS[name]()
    raise web.HTTPFound(request.query.get("url", "/loops"), headers={"Set-Cookie": "a=b"})


def fetch(path: str, limits: FetchLimits | None = None, **more: Any) -> Outcome:
    """What the tool says of a path at a server of our own; PORT in it is the server's."""

    async def run() -> Outcome:
        app = web.Application()
        app.router.add_get("/{name}", page)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = str(runner.addresses[0][1])
            tool = fetch_tool(limits=limits, resolve=resolve, allowed=only_this_one)
            return await tool.run({"url": path.replace("PORT", port), **more}, PLACE)
        finally:
            await runner.cleanup()

    return asyncio.run(asyncio.wait_for(run(), 60))


def test_a_page_is_text() -> None:
    text = fetch("http://site.test:PORT/html").text
    assert "\x1b" not in text
    first, _, rest = text.partition("\n")
    assert first.startswith("[status 200, text/html, http://site.test:")
    body = rest.partition("One")[2]
    assert rest.startswith("标题\n\n# Heading\n\nOne two three [next](http://site.test:")
    assert "/next?a=1) no\n\n- first\n- second\n\na  b\n  c\n\n" in body
    assert "1 | 2" in body
    assert body.rstrip().endswith("<b>")
    assert "evil" not in text


@pytest.mark.parametrize(
    ("path", "said", "failed"),
    [
        ("gbk", "你好，世界", False),
        ("json", '{"a": "你好"}', False),
        ("packed", "压缩", False),
        ("binary", "(not text: application/octet-stream, 100 bytes)", False),
        ("missing", "[status 404", True),
        ("host", "site.test None", False),
        ("odd", "its encoding is not supported", True),
        ("loops", "more than 5 redirects", True),
        ("to?url=/host", "site.test None", False),
        (
            "to?url=http://127.0.0.1:PORT/host",
            "site.test redirects to another host; to read that page, fetch http://",
            True,
        ),
    ],
)
def test_what_a_server_answers(path: str, said: str, failed: bool) -> None:
    outcome = fetch(f"http://site.test:PORT/{path}")
    assert said in outcome.text
    assert outcome.failed is failed


INNER = "is not on the public network"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://inner.test:PORT/host", INNER),
        ("http://both.test:PORT/host", INNER),
        ("http://127.0.0.2:PORT/host", INNER),
        ("http://[::1]:PORT/host", INNER),
        ("http://[::ffff:10.0.0.1]:PORT/host", INNER),
        ("http://localhost.localdomain.invalid:PORT/host", "no such host"),
        ("http://none.test/", "no such host"),
        ("http://2130706433:PORT/host", "not a valid host name or address"),
        ("http://127.1:PORT/host", "not a valid host name or address"),
        ("http://site.test:PORT/to?url=http://inner.test:PORT/host", "redirects to another host"),
        ("http://site.test:PORT/to?url=http://169.254.169.254/latest", "redirects to another host"),
        ("http://site.test:PORT/to?url=//inner.test:PORT/host", "redirects to another host"),
        ("http://site.test:PORT/to?url=file:///etc/passwd", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://site.test/", "only http and https"),
        ("site.test", "only http and https"),
        ("http://user:secret@site.test:PORT/host", "no password"),
        ("http://", "host"),
        ("http://site.test:99999/", "not a valid address"),
        ("http://[/", "not a valid address"),
    ],
)
def test_what_is_not_public_is_not_reached(url: str, said: str) -> None:
    outcome = fetch(url)
    assert outcome.failed
    assert said in outcome.text
    assert "\n" not in outcome.text


def test_a_name_is_looked_up_once_and_the_checked_address_used() -> None:
    """A second look-up could answer otherwise."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def turning(host: str) -> list[str]:
        return next(answers)

    async def run() -> Outcome:
        app = web.Application()
        app.router.add_get("/{name}", page)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            tool = fetch_tool(resolve=turning, allowed=only_this_one)
            return await tool.run({"url": f"http://turning.test:{runner.addresses[0][1]}/host"}, PLACE)
        finally:
            await runner.cleanup()

    assert asyncio.run(run()).text.endswith("turning.test None")
    assert next(answers) == ["127.0.0.2"]


def test_sizes_are_limited() -> None:
    limits = FetchLimits(size=100_000, characters=1_000)
    for path in ("large", "bomb"):
        tracemalloc.start()
        text = fetch(f"http://site.test:PORT/{path}", limits).text
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10_000_000
        assert len(text) < 2_000
        assert "[the page is larger than 100,000 bytes; the rest was not read]" in text


def test_a_long_page_is_read_on() -> None:
    limits = FetchLimits(characters=10_000)
    first = fetch("http://site.test:PORT/lines", limits).text
    assert "[characters 0 to 10,000 of 108,890; continue with start=10000]" in first
    second = fetch("http://site.test:PORT/lines", limits, start=10_000).text
    joined = first.split("\n", 1)[1].rpartition("\n[")[0] + second.split("\n", 1)[1].rpartition("\n[")[0]
    assert joined == "".join(f"{number}\n" for number in range(20_000))[:20_000]


def test_a_server_that_says_nothing_is_left() -> None:
    outcome = fetch("http://site.test:PORT/hangs", FetchLimits(seconds=0.5))
    assert outcome.failed
    assert "no answer within 0.5 seconds" in outcome.text


def test_a_server_that_is_not_there_is_one_line() -> None:
    outcome = fetch("http://site.test:1/")
    assert outcome.failed
    assert "\n" not in outcome.text


def test_it_asks_first() -> None:
    tool = fetch_tool()
    assert tool.action is not None
    action = tool.action({"url": "https://DOCS.python.org/3/?q=a b"}, PLACE)
    assert (action.kind, action.subject) == ("network", "docs.python.org")
    assert action.details == "https://docs.python.org/3/?q=a+b"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        *((address, False) for address in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1")),
        *((address, False) for address in ("192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "240.0.0.1")),
        *((address, False) for address in ("255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "ff02::1")),
        *((address, False) for address in ("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::")),
        ("64:ff9b::5db8:d822", True),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


def test_the_systems_own_names_are_refused() -> None:
    with pytest.raises(InputError, match=INNER):
        asyncio.run(addresses_of("localhost", resolve_by_system, is_public))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<script>if (a < b) { </script>ok", "ok"),
        ("<svg><text>x</text></svg>ok<noscript>n</noscript>", "ok"),
        ("</script></p></pre></a>ok", "ok"),
        ("<a href='#top'>top</a> <a>none</a>", "top none"),
        ("<a href='http://[bad'>bad</a>", "bad"),
        ("&amp;lt; &#20320;&#x597d;", "&lt; 你好"),
        ("<h2>二</h2><h3>三</h3>", "## 二\n\n### 三"),
        ("", ""),
        ("<" * 50, "<" * 50),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_pages_well_formed_or_not(html: str, text: str) -> None:
    assert text_of_page(Page("http://site.test/a", html)) == text
