"""In a browser: the page loads its own files later, by their digests, and nothing else becomes a script of it."""

import json
import re
from pathlib import Path

import pytest

from everlong.web.build import build_page
from tests.web.browser import a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_build import WRITES, a_page

INDEX = """<!doctype html><html lang="en"><head><link rel="manifest" href="/manifest.webmanifest">
<link rel="stylesheet" href="/assets/index-1.css"><title>a page</title></head><body>
<script type="module" crossorigin src="/assets/index-1.js"></script></body></html>"""
TELLS = "onconnect = event => event.ports[0].postMessage('ran'); globalThis.postMessage?.('ran');"
#: A page in the small: its script imports a second one later, which imports a third.
BUILT = {
    "index.html": INDEX,
    "assets/index-1.css": "body { color: rgb(1, 2, 3) }",
    "assets/index-1.js": "window.later = () => import('/assets/later-1.js').then(one => one.said, () => 'held');",
    "assets/later-1.js": "import { deep } from './deep-1.js'; export const said = 'later and ' + deep;",
    "assets/deep-1.js": "export const deep = 'deep';",
    "sw.js": f"self.addEventListener('fetch', () => {{}}); {TELLS}",
    "asks.js": "fetch('/everlong/api/state').then(answer => postMessage(answer.status), () => postMessage('held'))",
    "manifest.webmanifest": '{"name": "a page", "start_url": "/", "display": "standalone"}',
    "icon-192.png": "",
}
#: What a script of the page, were there one, could start: each yields "ran" or "held".
STARTS = {
    "a file that is no part of the page": ("import('/assets/other-1.js').then(() => 'ran', () => 'held')", "held"),
    "an address that holds a script": ("import('data:text/javascript,1').then(() => 'ran', () => 'held')", "held"),
    "a script in a tag": (
        """new Promise(done => { const one = document.createElement('script'); one.src = '/assets/later-1.js';
        one.onload = () => done('ran'); one.onerror = () => done('held'); document.body.append(one) })""",
        "held",
    ),
    "another import map": (
        """new Promise(done => { const one = document.createElement('script'); one.type = 'importmap';
        one.textContent = '{"imports": {"x": "/assets/other-1.js"}}'; document.head.append(one);
        import('x').then(() => done('ran'), () => done('held')) })""",
        "held",
    ),
    "a worker of its own": (
        """new Promise(done => { const one = new Worker('/sw.js'); one.onerror = () => done('held');
        one.onmessage = () => done('ran') })""",
        "ran",
    ),
    "a shared worker of its own": (
        """new Promise(done => { const one = new SharedWorker('/sw.js'); one.onerror = () => done('held');
        one.port.onmessage = () => done('ran') })""",
        "ran",
    ),
    "a service worker of its own": (
        """navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)
        .then(() => 'ran', () => 'held')""",
        "ran",
    ),
    "a worker that holds its script": (
        """new Promise(done => { try { const one = new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])));
        one.onerror = () => done('held'); one.onmessage = () => done('ran') } catch { done('held') } })""",
        "held",
    ),
    "a worker that asks the server": (
        """new Promise(done => { const one = new Worker('/asks.js'); one.onerror = () => done('held');
        one.onmessage = told => done(told.data === 200 ? 'ran' : 'held') })""",
        "ran",
    ),
}


def built(folder: Path) -> Path:
    """The small page, built and sealed as ours is."""
    writes = "".join(
        f"fs.mkdirSync(d+'/assets',{{recursive:true}});fs.writeFileSync(d+'/'+{json.dumps(name)},{json.dumps(text)});"
        for name, text in BUILT.items()
    )
    build_page(a_page(folder, WRITES + writes), folder / "built")
    (folder / "built" / "assets" / "other-1.js").write_text("window.broken = 1", encoding="utf-8")
    return folder / "built"


@in_a_browser
def test_files_are_loaded_later_by_their_digests_and_no_others(tmp_path: Path) -> None:
    with an_app(built=built(tmp_path)) as (app, _), a_view(app, complains=("Content Security Policy",)) as view:
        view.open()
        assert view.page.evaluate("window.later()") == "later and deep"
        assert view.page.evaluate("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
        assert not view.told
        told = {name: view.page.evaluate(way) for name, (way, _) in STARTS.items()}
        assert told == {name: wanted for name, (_, wanted) in STARTS.items()}
        assert view.page.evaluate("window.broken") is None


@in_a_browser
@pytest.mark.parametrize("name", ["later-1.js", "deep-1.js"])
def test_a_file_that_was_changed_after_the_build_is_not_run(name: str, tmp_path: Path) -> None:
    folder = built(tmp_path)
    (folder / "assets" / name).write_text("window.broken = 1; export const said = 1, deep = 1", encoding="utf-8")
    with an_app(built=folder) as (app, _), a_view(app, complains=("integrity",)) as view:
        view.open()
        assert view.page.evaluate("window.later()") == "held"
        assert view.page.evaluate("window.broken") is None


TYPES = {
    "/sw.js": "text/javascript; charset=utf-8",
    "/manifest.webmanifest": "application/manifest+json",
    "/icon-192.png": "image/png",
    "/assets/later-1.js": "text/javascript; charset=utf-8",
}


def test_the_policy_names_every_script_and_files_have_their_types(tmp_path: Path) -> None:
    with an_app(built=built(tmp_path)) as (app, _):
        page = app.page()
        policy = page.raw("GET", "/")[2]["content-security-policy"]
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
        assert rules["frame-ancestors"] == ["'none'"]
        assert [rules[name] for name in ("worker-src", "manifest-src", "font-src")] == [["'self'"]] * 3
        assert all(re.fullmatch(r"'sha256-.{44}'", digest) for digest in rules["script-src"] + rules["style-src"])
        assert len(rules["script-src"]) == 4  # three scripts and the map of what is imported
        answers = {path: page.raw("GET", path) for path in TYPES}
        assert {path: headers["content-type"] for path, (_, _, headers) in answers.items()} == TYPES
        for _, _, headers in answers.values():
            assert "default-src 'none'; connect-src 'self'" in headers["content-security-policy"]


#: Scripts that share a part: the page loads that part first, see `withCharts` in App.svelte and `loadColours`.
LOADED_BEFORE = {("Keys", "DayBars"), ("Usage", "DayBars"), ("paintRare", "paint")}


def test_what_is_loaded_later_imports_nothing_that_is_not_loaded_yet() -> None:
    """WebKit finds no digest for such a script, and the policy blocks it: the page of it stays empty."""
    assets = the_page() / "assets"
    imports = {
        (script.stem.partition("-")[0], name)
        for script in assets.glob("*.js")
        for name in re.findall(r'from"\./(\w+)[^"]*\.js"', script.read_text(encoding="utf-8"))
        if name != "index"
    }
    assert imports == LOADED_BEFORE
