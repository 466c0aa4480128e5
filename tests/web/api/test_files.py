"""The files of the page: only those that were built, by their exact names."""

from pathlib import Path

from tests.web.running import an_app

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
