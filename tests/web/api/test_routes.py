"""docs/reference/app-api.md names every route of the app's API, and no other."""

import re
from pathlib import Path

from everlong.web import Guard, web_routes
from everlong.web.api.routes import API
from tests.web.running import an_app

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "app-api.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ((?:`[A-Z]+` ?)+)\| `(/[^?`]*)", re.MULTILINE)
PLACES = {"{thread}": "ID", "{order:int}": "ORDER"}


def documented_path(path: str) -> str:
    """Write a path as the page does. Example: "/threads/{thread}/pins/{pin}" -> "/threads/ID/pins/PIN"."""
    for name, place in PLACES.items():
        path = path.replace(name, place)
    return re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), path)


def test_the_page_names_every_route_and_no_other() -> None:
    with an_app() as (app, _):
        table = web_routes(app.state, Guard())
    routes = {
        (method, documented_path(route.path.removeprefix(API)))
        for route in table
        for method in route.methods or ()
        if route.path.startswith(API) and method != "HEAD"
    }
    shown = {(method, path) for methods, path in ROW.findall(PAGE) for method in re.findall(r"\w+", methods)}
    assert shown == routes
