"""Repair a history so that the provider accepts it: the last step before sending.

`repair_history` runs a fixed list of passes over the messages, each with one concern, and reports every change. It
never changes a valid history and never shortens texts. It adds only a word from the user at the start, and notes for
missing or empty results and for images. It does not count tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from everlong.core import Action, Edit, History, Message, message_ref
from everlong.wire.formats import format_named
from everlong.wire.formats.format import Format, Rules
from everlong.wire.formats.validation import misplaced
from everlong.wire.repair.arguments import repair_arguments
from everlong.wire.repair.blanks import drop_blanks
from everlong.wire.repair.draft import Draft, Note, Pass, Placed, each
from everlong.wire.repair.ids import repair_names
from everlong.wire.repair.pairs import pair_results
from everlong.wire.repair.repeats import drop_repeats
from everlong.wire.repair.shapes import plain, seat_parts, usual_shapes
from everlong.wire.repair.surrogates import clean_surrogates
from everlong.wire.repair.thinking import drop_loose_thinking, drop_unsigned_thinking
from everlong.wire.repair.turns import open_with_user, place_system, trim_ending

__all__ = ["PASSES", "Repaired", "repair_history", "valid"]

STEP = "repair"

#: In this order: first the parts of each message, then the relations between messages.
PASSES: tuple[Pass, ...] = (
    each(clean_surrogates),
    each(seat_parts),
    each(usual_shapes),
    each(repair_arguments),
    each(repair_names),
    each(drop_unsigned_thinking),
    drop_repeats,
    each(drop_blanks),
    pair_results,
    drop_loose_thinking,
    place_system,
    open_with_user,
    trim_ending,
)


@dataclass(frozen=True, slots=True)
class Repaired:
    """A history that can be sent, and the changes that were needed. `at` of an edit is an index in the input."""

    messages: History
    edits: tuple[Edit, ...]
    #: For each message, the index in the input that it comes from or was added for.
    places: tuple[int, ...]


def repair_history(messages: Sequence[Message], fmt: str = "openai-chat") -> Repaired:
    """Return the history in a form that the provider of `fmt` accepts. A valid history stays unchanged.

    Example: user, call a, user -> user, call a, result a "[no result: …]", user
    """
    form, given = format_named(fmt), tuple(messages)
    if _accepts(form, given):
        return Repaired(given, (), tuple(range(len(given))))
    draft = _passed(Draft(tuple(Placed(at, message) for at, message in enumerate(given))), form.rules)
    if not _accepts(form, draft.messages):
        draft = _passed(each(plain)(draft, form.rules), form.rules)
    notes = sorted(dict.fromkeys(draft.notes), key=lambda note: note.at)
    places = tuple(item.at for item in draft.placed)
    return Repaired(draft.messages, tuple(_edit(note, given) for note in notes), places)


def valid(fmt: str, messages: Sequence[Message]) -> bool:
    """Return whether the provider of `fmt` would accept the history as it is."""
    return _accepts(format_named(fmt), messages)


def _accepts(form: Format, messages: Sequence[Message]) -> bool:
    return not any(map(misplaced, messages)) and not form.problems(form.write_history(messages))


def _passed(draft: Draft, rules: Rules) -> Draft:
    return reduce(lambda so_far, step: step(so_far, rules), PASSES, draft)


def _edit(note: Note, given: History) -> Edit:
    ref = message_ref(given[note.at]) if note.at < len(given) else None
    return Edit(at=note.at, step=STEP, action=Action.REPAIR, reason=note.reason, before=0, after=0, ref=ref)
