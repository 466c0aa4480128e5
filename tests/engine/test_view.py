"""Views: edits name messages of the history, wherever it begins, and repairs account for every token."""

from functools import partial

import pytest

from everlong.compress import Preset, soft_trim
from everlong.core import Action, History, message_ref
from everlong.engine.budget import counter_for
from everlong.engine.view import ViewOptions, arrived, assembled_view, flattened, grown_view, view_of, without_images
from everlong.errors import BudgetImpossible
from everlong.wire import valid
from tests.core.build import assistant, calls, result, system, user

SHORT = Preset(name="short", arrival=(partial(soft_trim, share=1.0, most_characters=400),))
COUNTER = counter_for("gpt-4o")
LONG = "\n".join(f"line {n} of a long result" for n in range(200))
FRONT: History = (system("Be brief."), user("Read it."))
NEWS: History = (calls("1"), result("1", LONG), assistant("Done."))


def options(**more: object) -> ViewOptions:
    """What a view is made for, without a limit unless one is given."""
    given: dict[str, object] = {"counter": COUNTER, "preset": SHORT, "window": 16_000, "fmt": "openai-chat", **more}
    return ViewOptions(**given)  # type: ignore[arg-type]


def test_edits_on_arrival_name_the_message_of_the_whole_history() -> None:
    view = assembled_view(FRONT, NEWS, options())
    (edit,) = view.edits
    assert (edit.at, edit.action) == (3, Action.SHORTEN)
    assert view.history[edit.at] == result("1", LONG)
    assert view.tokens == COUNTER.messages(view.messages) < COUNTER.messages(view.history)


def test_a_grown_view_is_the_view_of_the_grown_history() -> None:
    grown = grown_view((*FRONT, *NEWS), options(), assembled_view(FRONT, (), options()))
    whole = assembled_view(FRONT, NEWS, options())
    assert grown is not None
    assert (grown.messages, grown.edits, grown.tokens) == (whole.messages, whole.edits, whole.tokens)
    assert grown.places == (0, 1, 2, 3, 4)
    assert arrived((*FRONT, *NEWS), options()) == whole.messages


def test_a_pin_keeps_its_message_whole_wherever_the_history_begins() -> None:
    assert assembled_view(FRONT, NEWS, options(pins=frozenset({3}))).edits == ()
    assert grown_view((*FRONT, *NEWS), options(pins=frozenset({3})), assembled_view(FRONT, (), options())).edits == ()  # type: ignore[union-attr]


def test_a_history_that_changed_is_no_longer_extended() -> None:
    before = assembled_view(FRONT, (), options())
    assert grown_view((system("Be long."), *FRONT[1:], *NEWS), options(), before) is None
    assert grown_view(FRONT[:1], options(), before) is None


def test_a_repair_is_reported_with_the_message_it_concerns_and_what_it_costs() -> None:
    open_call: History = (user("Go."), calls("1"), user("And?"))
    view = view_of(open_call, options())
    assert valid("openai-chat", view.messages)
    (edit,) = view.edits
    assert view.history[edit.at] in open_call
    assert edit.ref == message_ref(view.history[edit.at])
    assert view.tokens == COUNTER.messages(view.messages)
    assert sum(edit.after - edit.before for edit in view.edits) == view.tokens - COUNTER.messages(open_call)


@pytest.mark.parametrize("more", [0, -1])
def test_a_view_may_be_just_as_large_as_its_limit(more: int) -> None:
    history: History = (user("word " * 200),)
    limit = COUNTER.messages(history) + more
    if more:
        with pytest.raises(BudgetImpossible):
            view_of(history, options(limit=limit, target=limit))
    else:
        assert view_of(history, options(limit=limit, target=limit)).messages == history


def test_a_later_compaction_goes_down_to_the_later_target_only_once_the_history_grew() -> None:
    history: History = tuple(turn("word " * 100) for _ in range(10) for turn in (user, assistant))
    chosen = options(preset=Preset(name="floor only"), limit=1_500, target=1_500, later=500)
    first = view_of((*history[:12], user("Now?")), chosen)
    assert 500 < first.tokens <= 1_500
    again = view_of((*history[:12], user("Now?")), chosen, first)
    assert again == first
    grown = view_of((*history[:12], user("Now?"), *history[12:], user("And now?")), chosen, first)
    assert grown.tokens <= 500
    assert grown.compactions == first.compactions + 1


def test_the_last_shape_that_every_provider_takes_is_words() -> None:
    plain = flattened((user("Go."), *NEWS))
    assert [message.text for message in plain][1:3] == ["[called read_file: {}]", f"[result of read_file]\n{LONG}"]
    assert not any(message.calls or message.results for message in plain)
    assert without_images(NEWS) == NEWS
