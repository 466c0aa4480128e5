"""How a compaction ended, as pages are told it: never done where there is no summary of a model."""

from datetime import UTC, datetime
from typing import Any

import pytest

from everlong.core import Event, EventKind
from everlong.llm import Answer, ReceivedRequest, Refusal, Step
from everlong.llm.scripted.script import Broken
from everlong.web.live.outcomes import outcome_of, reason_of
from tests.web.boats import TALKS, WINDOW, fill, is_asked_to_summarise, points
from tests.web.running import an_app

NOW = datetime(2026, 3, 18, tzinfo=UTC)
REASONS = [
    ("gpt-4o: no answer within 120 s", "slow", "gpt-4o", ""),
    ("gpt-4o: the answer was cut off at its length limit", "length", "gpt-4o", ""),
    ("small: its window of 2,048 tokens is too small", "window", "small", ""),
    ("gpt-4o: ContextOverflow 400: too many tokens", "window", "gpt-4o", "too many tokens"),
    ("gpt-4o: RateLimited 429: slow down", "busy", "gpt-4o", "slow down"),
    ("gpt-4o: ProviderError 401: no such key", "key", "gpt-4o", "no such key"),
    ("gpt-4o: ProviderError 502: bad gateway", "away", "gpt-4o", "bad gateway"),
    ("gpt-4o: ProviderError: cannot connect", "away", "gpt-4o", "cannot connect"),
    ("gpt-4o: ProviderError 404: no such model", "refused", "gpt-4o", "no such model"),
    ("gpt-4o: the stream stopped before the answer was complete", "away", "gpt-4o", ""),
    ("gpt-4o: the stream ended without an end", "away", "gpt-4o", ""),
    ("gpt-4o: it names what nobody named", "wrong", "gpt-4o", ""),
    ("a: no answer within 9 s; b: ProviderError 401: no", "key", "b", "no"),
    ("gpt-4o failed to write a summary 2 times and is asked again after 8 messages", "resting", "", ""),
    ("gpt-4o wrote no summary 2 times and is asked again after 8 messages", "resting", "", ""),
    ("there is no model to write it", "no_author", "", ""),
    ("there is no author", "no_author", "", ""),
    ("cancelled", "cancelled", "", ""),
    ("interrupted", "interrupted", "", ""),
    ("nothing worth a summary since the last one", "nothing_new", "", ""),
    ("it would not have saved anything", "no_gain", "", ""),
    ("the thread was changed meanwhile", "changed", "", ""),
    ("the store is away", "store", "", ""),
]


@pytest.mark.parametrize(("reason", "word", "model", "detail"), REASONS, ids=[row[0] for row in REASONS])
def test_a_reason_becomes_a_word_that_pages_have_words_for(reason: str, word: str, model: str, detail: str) -> None:
    assert reason_of(reason) == {"reason": word, "model": model, "detail": detail}


@pytest.mark.parametrize(
    ("kind", "reason", "state"),
    [
        (EventKind.SUMMARY_STARTED, "it is due", "started"),
        (EventKind.SUMMARY_APPLIED, "", "done"),
        (EventKind.SUMMARY_APPLIED, "by rules: gpt-4o: no answer within 120 s", "failed"),
        (EventKind.SUMMARY_SKIPPED, "nothing worth a summary since the last one", "skipped"),
        (EventKind.SUMMARY_FAILED, "cancelled", "failed"),
        (EventKind.TURN_STARTED, "", None),
    ],
)
def test_only_a_summary_of_a_model_is_done(kind: EventKind, reason: str, state: str | None) -> None:
    told = outcome_of(Event(id="e", kind=kind, time=NOW, reason=reason))
    assert (None if told is None else told["state"]) == state


ENDS: dict[str, tuple[Step, str]] = {
    "refused": (Refusal(404, '{"error": {"message": "no such model"}}'), "refused"),
    "broken off after some words": (
        Broken(Answer(text="The boats at the pier and what became of them."), pieces=3),
        "away",
    ),
    "no summary": (Answer(text="{}"), "wrong"),
}


@pytest.mark.parametrize("name", ENDS)
def test_whatever_a_model_does_instead_the_end_is_told_and_another_can_be_tried(name: str) -> None:
    step, reason = ENDS[name]

    def script(asked: ReceivedRequest) -> Step:
        return step if is_asked_to_summarise(asked) else TALKS(asked)

    with an_app(script, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        for _ in range(2):
            told: list[dict[str, Any]] = page.compact(thread)
            states = [event["state"] for event in told if event["type"] == "compacting"]
            assert states[0] == "started"
            assert states[-1] == "failed"
            assert (told[-1]["reason"], told[-1]["by_rules"]) == (reason, True)
            row = points(page, thread)[-1]
            assert (row["author"], row["messages"]) == ("rules", told[-1]["messages"])
            assert not page.get(f"/everlong/api/threads/{thread}/context")["compacting"]
            fill(page, thread, 2)


def test_nothing_to_summarise_is_skipped_with_its_reason() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        told = page.compact(thread)[-1]
        assert (told["state"], told["reason"], told["messages"]) == ("skipped", "nothing_new", None)
