"""Why a request was refused, in one word: every wording by its sample, every status, and how long to wait."""

import pytest
from hypothesis import given, strategies as st

from everlong.wire.refusals import REASON_SIGNS, Kind, Reason, ReasonSign, classify
from everlong.wire.refusals.classify import as_error
from everlong.wire.refusals.reasons import LONGEST_WAIT, is_web_page, seconds_to_wait


def _named(sign: ReasonSign) -> str:
    return f"{sign.provider}: {sign.sample[:40]}"


@pytest.mark.parametrize("sign", REASON_SIGNS, ids=_named)
def test_every_wording_is_known_by_its_sample(sign: ReasonSign) -> None:
    refusal = classify(sign.sample, status=400)
    assert refusal.reason is sign.reason
    error = as_error(refusal)
    assert error.reason == sign.reason.value


STATUSES: dict[int, Reason] = {
    401: Reason.KEY,
    402: Reason.QUOTA,
    403: Reason.KEY,
    404: Reason.PATH,
    429: Reason.RATE,
    500: Reason.SERVER,
    502: Reason.SERVER,
    503: Reason.OVERLOADED,
    504: Reason.SLOW,
    529: Reason.OVERLOADED,
}


@pytest.mark.parametrize("status", STATUSES)
def test_where_no_wording_is_known_the_status_says_why(status: int) -> None:
    assert classify("nothing that anybody knows", status=status).reason is STATUSES[status]


PAGES: dict[str, tuple[str, int | None, Reason]] = {
    "an app's page": ("<!doctype html><html><title>Intranet</title></html>", None, Reason.PAGE),
    "a path that is a page": ("<html><head><title>404 Not Found</title></head></html>", 404, Reason.PAGE),
    "a proxy's challenge": ("\n<!DOCTYPE html>\n<html lang='en'>Just a moment...", 403, Reason.PAGE),
    "a proxy whose server is down": ("<html><h1>502 Bad Gateway</h1></html>", 502, Reason.SERVER),
    "a proxy that is asked too often": ("<html><h1>429 Too Many Requests</h1></html>", 429, Reason.RATE),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_for_people_is_told_from_an_answer(name: str) -> None:
    text, status, expected = PAGES[name]
    assert is_web_page(text)
    assert classify(text, status=status).reason is expected


WAITS: dict[str, float | None] = {
    "Rate limit reached for gpt-4o. Please try again in 7.66s.": 7.66,
    "Please try again in 1m30.5s. Visit our page": 90.5,
    "Please try again in 6ms.": 0.006,
    "Please retry in 23.4s": 23.4,
    '{"retryDelay": "41s"}': 41.0,
    "Too many requests, retry after 30 seconds": 30.0,
    "try again in 2 minutes": 120.0,
    "Please try again later.": None,
    "model 7 not found, try pulling it first": None,
}


@pytest.mark.parametrize("text", WAITS)
def test_how_long_to_wait_is_read_from_words(text: str) -> None:
    assert seconds_to_wait(text) == WAITS[text]


def test_a_quota_that_comes_back_in_seconds_is_a_pause() -> None:
    gone = "You exceeded your current quota, please check your plan and billing details."
    assert classify(gone, status=429).reason is Reason.QUOTA
    refusal = classify(f"{gone} Please retry in 23.4s.", status=429)
    assert (refusal.reason, refusal.after) == (Reason.RATE, 23.4)


@given(st.text(max_size=200))
def test_any_text_is_read_without_harm(text: str) -> None:
    after = seconds_to_wait(text)
    assert after is None or 0 <= after <= LONGEST_WAIT
    refusal = classify(text, status=429)
    assert refusal.kind is not Kind.RATE_LIMIT or refusal.reason is not None
