"""The usage figures in the browser."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, expect

from everlong.core import Event, EventKind
from everlong.store import MemoryThreads
from everlong.web.state.settings import OWNER
from tests.web.browser import View, a_view, in_a_browser, the_page
from tests.web.running import an_app


def spent(name: str, cost: float, *, calls: int = 1, reason: str = "") -> Event:
    """A call of today, or several of one kind."""
    return Event(
        id=name,
        kind=EventKind.USAGE_RECORDED,
        time=datetime.now(UTC),
        model="gpt-4o",
        reason=reason,
        tokens_before=40_000,
        tokens_after=900,
        cost=cost,
        data=f'{{"cached":0,"calls":{calls}}}',
    )


def tile(view: View, key: str) -> Locator:
    """The tile of that name."""
    return view.page.locator("dl > div").filter(has=view.page.get_by_text(view.word(key), exact=True))


@in_a_browser
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_what_summaries_cost_stands_beside_what_was_spent(language: str) -> None:
    threads = MemoryThreads()
    threads.create("a", owner=OWNER, title="Boats at the pier")
    threads.create("b", owner=OWNER, title="Another talk")
    threads.record("a", [spent("1", 2.0), spent("2", 0.75, calls=3, reason="summary")])
    threads.record("b", [spent("3", 1.0)])
    with an_app(threads=threads, built=the_page()) as (app, _), a_view(app, language=language) as view:
        view.open("#/usage")
        expect(tile(view, "usage.cost")).to_contain_text("$3.75")
        expect(tile(view, "usage.summary_cost")).to_contain_text("$0.75")
        expect(tile(view, "usage.summary_cost")).to_contain_text(view.like("usage.summary_calls_other"))
        for_summaries = view.page.get_by_role("button", name=view.word("usage.for_summaries"))
        expect(for_summaries).to_have_count(2)
        for_summaries.last.click()
        lines = view.page.get_by_role("table").last.locator("tbody tr")
        expect(lines.nth(0)).to_contain_text("Boats at the pier")
        expect(lines.nth(0).locator("td").nth(4)).to_have_text("$0.75")
        expect(lines.nth(1).locator("td").nth(4)).to_have_text("$0.00")
        expect(lines.nth(0).locator("td").last).to_have_text("-$0.75")  # nothing was saved by them yet
        tile(view, "usage.saved").get_by_text(view.word("usage.how")).click()
        expect(tile(view, "usage.saved").get_by_text(view.word("usage.saved_help"))).to_be_visible()
