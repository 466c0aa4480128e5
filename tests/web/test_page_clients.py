"""Keys of the gateway's clients in the browser: an operator makes, limits, replaces and revokes them."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from everlong.gateway.keys.spend import Spend
from tests.gateway.running import RunningGateway
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.sites import Site, a_server

REFUSED = ("401 (Unauthorized) /everlong/", "403 (Forbidden) /everlong/")


def limit(view: View, name: str) -> str:
    return view.word(f"clients.limit.{name}")


def known(gateway: RunningGateway) -> list[tuple[str, dict[str, float], bool]]:
    """Name, limits and whether it is revoked, of each key in the store."""
    rows = [record.shown() for record in gateway.services.keys.records.all()]
    return [(str(row["name"]), row["limits"], bool(row["revoked"])) for row in rows]  # type: ignore[misc]


@in_a_browser
@pytest.mark.parametrize(
    ("size", "dark", "language"), [(WIDE, False, "en-US"), (PHONE, True, "zh-CN")], ids=["desk", "phone"]
)
def test_a_key_is_made_shown_once_limited_replaced_and_revoked(
    size: tuple[int, int], dark: bool, language: str, tmp_path: Path
) -> None:
    the_page()
    with (
        Site() as upstream,
        a_server(upstream, tmp_path) as gateway,
        a_view(gateway, size=size, dark=dark, language=language) as view,
    ):
        page = view.open("#/keys")
        expect(page.get_by_text(view.word("clients.none"), exact=True)).to_be_visible()
        view.button("clients.new").click()
        form = page.get_by_role("dialog")
        form.get_by_label(view.word("clients.name")).fill("team-a")
        form.get_by_label(limit(view, "requests_per_minute")).fill("many")
        form.get_by_role("button", name=view.word("clients.make")).click()
        expect(form.get_by_role("alert")).to_have_text(view.word("clients.bad_limit"))
        form.get_by_label(limit(view, "requests_per_minute")).fill("60")
        form.get_by_label(limit(view, "dollars_per_day")).fill("2.5")
        form.get_by_role("button", name=view.word("clients.make")).click()
        key = page.get_by_test_id("new-key").inner_text()
        assert re.fullmatch(r"el-[A-Za-z0-9_-]{40}", key)
        assert view.faults() == []
        view.button("clients.done").click()
        expect(page.get_by_text(key)).to_have_count(0)
        assert known(gateway) == [("team-a", {"requests_per_minute": 60, "dollars_per_day": 2.5}, False)]

        gateway.services.keys.ledger.add("team-a", Spend(requests=3, prompt=1_200, output=300, dollars=1.25))
        page.reload()
        row = page.get_by_role("list", name=view.word("app.keys")).get_by_role("article")
        expect(row).to_contain_text("$1.25")
        expect(page.get_by_role("heading", name=view.word("clients.chart"))).to_be_visible()
        assert view.faults() == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing stands out at the side"

        named = {name: view.word(f"clients.{name}_of").format(name="team-a") for name in ("set", "rotate", "revoke")}
        row.get_by_role("button", name=named["set"]).click()
        form.get_by_label(limit(view, "dollars_per_day")).fill("")
        form.get_by_label(limit(view, "tokens_per_day")).fill("3000000")
        form.get_by_role("button", name=view.word("app.save")).press("Enter")
        expect(row).to_contain_text("3,000,000")
        assert known(gateway)[0][1] == {"requests_per_minute": 60, "tokens_per_day": 3_000_000}

        row.get_by_role("button", name=named["rotate"]).click()
        form.get_by_role("button", name=view.word("clients.rotate"), exact=True).click()
        assert page.get_by_test_id("new-key").inner_text() != key
        view.button("clients.done").click()

        row.get_by_role("button", name=named["revoke"]).click()
        form.get_by_role("button", name=view.word("app.cancel")).click()
        assert not known(gateway)[0][2]
        row.get_by_role("button", name=named["revoke"]).click()
        form.get_by_role("button", name=view.word("clients.revoke"), exact=True).click()
        expect(row).to_contain_text(view.word("clients.revoked"))
        assert known(gateway)[0][2]


@in_a_browser
def test_behind_a_proxy_the_page_wants_the_key_of_an_operator(tmp_path: Path) -> None:
    the_page()
    with (
        Site() as upstream,
        a_server(upstream, tmp_path, trusted_proxies=["127.0.0.1"]) as gateway,
        a_view(gateway, complains=REFUSED) as view,
    ):
        _, boss = gateway.services.keys.records.create("boss", {"operator": True})
        _, team = gateway.services.keys.records.create("team", {})
        gateway.services.keys.ring.refresh()
        page = view.open("#/keys")
        field = page.get_by_label(view.word("clients.operator_key"))
        field.fill(team)
        view.button("clients.enter").click()
        expect(page.get_by_role("alert")).to_have_text(view.word("clients.ask_wrong"))
        assert view.faults() == []
        field.fill(boss)
        view.button("clients.enter").click()
        expect(page.get_by_role("article")).to_have_count(2)
        assert boss not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
