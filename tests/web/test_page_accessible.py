"""Every page, drawer and dialog as axe-core sees it: no fault, at a desk and on a phone, light and dark."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from everlong.core import Message, Role, Text
from everlong.llm import ScriptedServer, Window
from everlong.store import MemoryThreads
from everlong.web.api.guard import Guard
from everlong.web.app import Setup
from tests.web.boats import TALKS, WINDOW, fill
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

PLACES = [
    pytest.param(WIDE, "en-US", False, id="desk light English"),
    pytest.param(WIDE, "zh-CN", True, id="desk dark Chinese"),
    pytest.param(PHONE, "en-US", True, id="phone dark English"),
    pytest.param(PHONE, "zh-CN", False, id="phone light Chinese"),
]
RICH = """# A heading

Some **bold** words, a [link](https://example.org), `code`, a footnote[^1] and $x^2$.

| boat | length | pier |
| --- | --- | --- |
| Ada | 12 m | 3 |

```python
print("tide")  # at six
```

- [x] done
- [ ] not yet

> quoted

[^1]: The note.
"""


def look(view: View, page: str) -> None:
    """No fault, whatever is shown."""
    assert view.faults() == [], page


@pytest.mark.parametrize(("size", "language", "dark"), PLACES)
@in_a_browser
def test_no_page_has_a_fault(size: tuple[int, int], language: str, dark: bool) -> None:
    with (
        an_app(TALKS, window=WINDOW, built=the_page()) as (app, _),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        page = app.page()
        thread = page.thread("Boats")
        fill(page, thread, 3)
        page.compact(thread)
        app.state.threads.append(thread, [Message(role, (Text(RICH),)) for role in (Role.USER, Role.ASSISTANT)])
        view.open()
        expect(view.field).to_be_visible()
        look(view, "a new thread")
        view.thread(thread)
        expect(view.log.get_by_role("table").last).to_be_visible()
        look(view, "a thread with a summary")
        if size == PHONE:
            view.button("app.sidebar").click()
            look(view, "the list as a drawer")
            view.page.keyboard.press("Escape")
            view.button("app.panel.show").click()
            look(view, "the panel as a drawer")
            view.page.keyboard.press("Escape")
        message = view.log.get_by_role("article", name=view.word("role.user")).last
        message.hover()
        message.get_by_role("button", name=view.word("chat.menu")).click()
        look(view, "the menu of a message")
        view.page.keyboard.press("Escape")
        for place in ("#/settings", "#/usage", "#/live"):
            view.open(place)
            expect(view.page.get_by_role("main").get_by_role("heading").first).to_be_visible()
            look(view, place)


@pytest.mark.parametrize(("size", "language", "dark"), PLACES[1:3])
@in_a_browser
def test_the_first_page_and_the_login_have_no_fault(size: tuple[int, int], language: str, dark: bool) -> None:
    def shows(app: RunningApp, ready: Callable[[View], None]) -> None:
        with a_view(app, size=size, language=language, dark=dark, complains=("401",)) as view:
            view.open()
            ready(view)
            look(view, "at the start")

    with ScriptedServer(window=Window(WINDOW)), RunningApp(Setup(threads=MemoryThreads()), built=the_page()) as app:
        shows(app, lambda view: expect(view.page.get_by_role("heading").first).to_be_visible())
    with an_app(built=the_page(), guard=Guard("a long password")) as (app, _):
        shows(app, lambda view: expect(view.page.get_by_label(view.word("login.password"))).to_be_visible())
