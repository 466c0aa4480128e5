"""What went wrong, for the page: every error has a kind, every kind its words in both languages and something to do."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    EverlongError,
    NotRecovered,
    ProviderError,
    Refused,
    StoreBusy,
    StoreError,
)
from everlong.llm import Answer, Endpoint, ReceivedRequest, Refusal, ScriptedServer, in_turn
from everlong.llm.scripted.script import Broken, Raw, Script
from everlong.web.api.endpoint import ERRORS
from everlong.web.build import PAGE
from everlong.web.state.failures import KINDS, kind_of
from everlong.web.state.sources import Source, with_version
from everlong.wire import OverflowSign, Reason, as_error, classify
from everlong.wire.refusals import REASON_SIGNS, ReasonSign
from everlong.wire.refusals.overflow import SIGNS
from everlong.wire.refusals.shape_signs import SHAPE_SIGNS
from everlong.wire.refusals.signs import REPLY_SIGNS, SIZE_SIGNS, VETO_SIGNS, RefusalSign
from tests.web.built import words
from tests.web.running import an_app

ALL_SIGNS = (*SIGNS, *SHAPE_SIGNS, *REPLY_SIGNS, *SIZE_SIGNS, *VETO_SIGNS, *REASON_SIGNS)
WEB = PAGE.parent


@pytest.mark.parametrize("sign", ALL_SIGNS, ids=lambda sign: f"{sign.provider}: {sign.sample[:30]}")
def test_every_wording_of_a_provider_has_a_kind_with_words(sign: OverflowSign | RefusalSign | ReasonSign) -> None:
    for status in (None, 400, 404, 429, 500):
        kind = kind_of(as_error(classify(sign.sample, status=status)))
        assert kind in KINDS
        assert all(f"failure.{kind}" in words(language) for language in ("en", "zh"))


def test_every_kind_that_the_server_says_has_words_in_both_languages() -> None:
    said = {
        kind for path in WEB.rglob("*.py") for kind in re.findall(r'kind="(\w+)"', path.read_text(encoding="utf-8"))
    }
    for kind in said | set(KINDS) | {kind for _, _, kind in ERRORS}:
        for language in ("en", "zh"):
            assert f"failure.{kind}" in words(language), (kind, language)


def test_no_reason_is_without_a_kind() -> None:
    kinds = {reason: kind_of(ProviderError("…", reason=reason)) for reason in Reason}
    assert "failed" not in kinds.values()
    assert len(set(kinds.values())) == len(Reason)


CASES: dict[str, tuple[EverlongError, str]] = {
    "no room": (BudgetImpossible(100, [("system", 200)]), "no_room"),
    "no room after a refusal": (NotRecovered("…", limit=100, parts=[("system", 200)]), "no_room"),
    "too long though shortened": (NotRecovered("…", limit=100), "too_long"),
    "more than the account may": (ContextOverflow("…", ceiling=True), "ceiling"),
    "too many bytes": (ContextOverflow("…", in_bytes=True), "too_large"),
    "the disk": (StoreError("chat.db: database or disk is full"), "store_full"),
    "another writer": (StoreBusy("…"), "store_away"),
    "a database that is away": (StoreError("Postgres does not answer"), "store_away"),
    "a refusal of ours": (Refused("…", status=409, kind="no_model"), "no_model"),
    "a parameter": (ProviderError("…", status=400), "rejected"),
    "anything": (EverlongError("…"), "failed"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_of_ours_has_its_kind(name: str) -> None:
    error, kind = CASES[name]
    assert kind_of(error) == kind


PAGE_OF_A_PROXY = "<!doctype html><html><head><title>Sign in</title></head></html>"
#: What the server does, what the page is told, what it offers first.
TURNS: dict[str, tuple[Script, str, str]] = {
    "a wrong key": (lambda _: Refusal(401, '{"error": {"message": "Incorrect API key provided"}}'), "key", "retry"),
    "a pause": (
        lambda _: Refusal(429, '{"error": {"message": "slow down"}}', (("retry-after", "20"),)),
        "rate",
        "wait",
    ),
    "a web page": (lambda _: Refusal(404, PAGE_OF_A_PROXY), "web_page", "retry"),
    "a web page that says OK": (
        lambda _: Raw(chunk=PAGE_OF_A_PROXY.encode(), content_type="text/html"),
        "web_page",
        "retry",
    ),
    "no such model": (
        lambda _: Refusal(404, '{"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}'),
        "no_such_model",
        "choose_model",
    ),
    "nothing left to pay with": (
        lambda _: Refusal(402, '{"error": {"message": "Insufficient Balance"}}'),
        "quota",
        "choose_model",
    ),
    "a filter": (lambda _: Refusal(400, '{"error": {"message": "Content Exists Risk"}}'), "filtered", "choose_model"),
    "a connection that is lost": (lambda _: Broken(Answer(text="half of it"), pieces=1), "lost", "retry"),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_failed_turn_says_what_went_wrong_and_what_helps(name: str) -> None:
    script, kind, first = TURNS[name]
    with an_app(script) as (app, _):
        page = app.page()
        events = page.say(page.thread(), "hello?")
        failure = next(event["failure"] for event in events if event["type"] == "failed")
        assert (failure["kind"], failure["actions"][0], failure["source"]) == (kind, first, "main")
        assert failure["after"] == (20.0 if kind == "rate" else None)
        assert not failure["editable"]
        assert "fix_key" not in failure["actions"]  # it was given when the server was started


def test_nobody_there_and_no_such_name() -> None:
    sources = [
        Source(name=name, endpoint=Endpoint(url=url, key="k"), models=("m",))
        for name, url in (("closed", "http://127.0.0.1:9/v1"), ("nowhere", "http://nobody.invalid/v1"))
    ]
    with an_app(sources=sources) as (app, _):
        page = app.page()
        told = {}
        for source in sources:
            events = page.say(page.thread(model=f"{source.name}/m"), "hello?")
            told[source.name] = next(event["failure"]["kind"] for event in events if event["type"] == "failed")
        assert told == {"closed": "not_listening", "nowhere": "no_host"}


def test_an_added_source_can_be_mended_and_its_key_stays_with_its_server(tmp_path: Path) -> None:
    keys: list[str] = []

    def script(asked: ReceivedRequest) -> Answer:
        keys.append(asked.headers.get("authorization", ""))
        return Answer(text="fine")

    with (
        ScriptedServer(script, models=("one",)) as first,
        ScriptedServer(script, models=("one",)) as second,
        an_app(folder=tmp_path) as (app, _),
    ):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "mine", "url": first.url, "key": "sk-first-1234567890"})
        thread = page.thread(model="mine/one")
        page.say(thread, "hello")
        changed = page.do("PATCH", "/everlong/api/sources/mine", {"key": "sk-second-1234567890"})
        assert (changed["url"], changed["has_key"], changed["models"]) == (first.url, True, 1)
        page.say(thread, "hello")
        moved = page.do("PATCH", "/everlong/api/sources/mine", {"url": second.url})
        assert (moved["url"], moved["has_key"]) == (second.url, False)
        page.say(thread, "hello")
        assert [key.removeprefix("Bearer ") for key in keys if key][:2] == [
            "sk-first-1234567890",
            "sk-second-1234567890",
        ]
        assert not any("sk-" in str(asked.headers) for asked in second.requests)
        assert page.ask("PATCH", "/everlong/api/sources/mine", {"url": "http://127.0.0.1:9/v1"})[0] == 422
        assert page.get("/everlong/api/sources")[1]["url"] == second.url, "what does not work is not kept"
        assert page.ask("PATCH", "/everlong/api/sources/main", {"key": "x"})[1]["error"]["kind"] == "given"
        assert page.ask("PATCH", "/everlong/api/sources/nobody", {"key": "x"})[1]["error"]["kind"] == "no_source"


def test_an_address_without_its_version_is_tried_with_it(tmp_path: Path) -> None:
    with ScriptedServer(in_turn([]), models=("one",)) as other, an_app(folder=tmp_path) as (app, _):
        page = app.page()
        bare = other.url.removesuffix("/v1")
        assert bare != other.url
        added = page.do("POST", "/everlong/api/sources", {"name": "mine", "url": bare})
        assert (added["url"], added["models"]) == (other.url, 1)
        page.say(page.thread(model="mine/one"), "hello")
        assert other.requests[-1].model == "one"


ADDRESSES: dict[str, str | None] = {
    "http://127.0.0.1:11434": "http://127.0.0.1:11434/v1",
    "http://127.0.0.1:11434/": "http://127.0.0.1:11434/v1",
    "https://models.example/api": "https://models.example/api/v1",
    "https://models.example/v1": None,
    "https://open.bigmodel.cn/api/paas/v4": None,
    "https://models.example/v1beta/openai": None,
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_the_version_is_added_where_there_is_none(url: str) -> None:
    assert with_version(Endpoint(url=url)) == ADDRESSES[url]


@given(st.text(alphabet="abv1/.-", max_size=12))
def test_a_version_is_added_once(path: str) -> None:
    longer = with_version(Endpoint(url=f"https://models.example/{path}"))
    assert longer is None or with_version(Endpoint(url=longer)) is None


def test_without_v1_the_page_is_offered_to_add_it(tmp_path: Path) -> None:
    with ScriptedServer(in_turn([]), models=("one",)) as other, an_app(folder=tmp_path) as (app, _):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "mine", "url": other.url})
        bare = Source(name="mine", endpoint=Endpoint(url=other.url.removesuffix("/v1")))
        app.state.sources.add(bare)  # as an earlier version kept it
        thread = page.thread(model="mine/one")
        failure = next(event["failure"] for event in page.say(thread, "hello") if event["type"] == "failed")
        assert failure["kind"] in ("path", "web_page")
        assert (failure["actions"][0], failure["suggested"], failure["editable"]) == ("add_version", other.url, True)
        page.do("PATCH", "/everlong/api/sources/mine", {"url": failure["suggested"]})
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/retry")
            stream.until("ended")
        assert page.rows(thread)[-1]["text"] == "hello"
