"""The verdict of a replay: for each window a sentence, large figures, and what has to be known beside them."""

from collections.abc import Iterator
from html import escape
from math import isfinite

from everlong.lab.replay.results import ReplayResult
from everlong.lab.report.replay_figures import Billed, Scene, billed
from everlong.lab.report.sheet import card, table
from everlong.lab.report.svg import tokens_short
from everlong.lab.report.wording import Wording, money, spaced

__all__ = ["percent", "verdict"]

SAME = 0.005  # of the uncut cost: less is no difference that is spoken of


def percent(share: float, digits: int = 1) -> str:
    """Example: 0.4712 -> 47.1 %; a dash where it is no number."""
    return f"{100 * share:.{digits}f} %" if isfinite(share) else "–"


def verdict(scene: Scene, say: Wording, *, models: bool = True) -> str:
    """The card of one window; with `models`, also what was really paid for each."""
    record = billed(scene.sessions)
    facts = (say("replay_prices", name=scene.tariff), say("conversations", n=f"{len(scene.sessions):,}"))
    lead = say.joined(*_sentences(scene, say))
    sums = "".join(_sums(scene, record, say))
    figures = "".join(_facts(scene.ours, say)) if scene.ours else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(scene, record, say))
    tiles = f'<div class="tiles">{sums}</div><div class="tiles">{figures}</div>'
    body = f'<p class="lead">{escape(lead)}</p>{tiles}<ul class="notes">{notes}</ul>'
    title = say("replay_window", n=f"{scene.window:,}")
    return card(title, body + (_by_model(record, say) if record and models else ""), facts)


def _sentences(scene: Scene, say: Wording) -> Iterator[str]:
    ours = scene.ours
    if ours is None:
        yield say("replay_no_ours")
        return
    change = ours.ratio - 1
    key = "replay_same" if abs(change) < SAME else "replay_less" if change < 0 else "replay_more"
    values = {"ours": money(ours.dollars)}
    if key != "replay_same":
        values |= {"uncut": money(ours.uncut), "share": percent(abs(change), 0)}
    yield say(key, **values)
    if ours.probes:
        kept, literal = percent(ours.kept_percent / 100), percent(ours.literal_percent / 100)
        yield say("replay_stays", n=f"{ours.probes:,}", kept=kept, literal=literal)
    else:
        yield say("replay_unprobed")


def _tile(name: str, value: str, under: str, kind: str = "") -> str:
    words = f"<span>{escape(name)}</span><b>{escape(value)}</b><small>{escape(under)}</small>"
    return f'<div class="tile {kind}">{words}</div>'


def _sums(scene: Scene, record: Billed | None, say: Wording) -> Iterator[str]:
    if record:
        under = say("replay_tile_recorded_under", n=f"{record.requests:,}", tokens=tokens_short(record.tokens))
        yield _tile(say("replay_tile_recorded"), money(record.dollars), under, "sum")
    plain = scene.whole or scene.ours
    if plain:
        under = "under" if scene.whole is None else "over" if scene.longest > scene.window else "fits"
        yield _tile(say("replay_tile_uncut"), money(plain.uncut), say(f"replay_tile_uncut_{under}"), "sum")
    if scene.ours:
        under = say("replay_tile_ours_under", share=percent(scene.ours.ratio))
        yield _tile(say("replay_tile_ours"), money(scene.ours.dollars), under, "sum ours")


def _facts(ours: ReplayResult, say: Wording) -> Iterator[str]:
    if ours.probes:
        under = say("replay_tile_kept_under", literal=percent(ours.literal_percent / 100))
        yield _tile(say("replay_tile_kept"), percent(ours.kept_percent / 100), under)
    if not ours.cuts:
        under = say("replay_tile_no_cuts")
    elif ours.resets == ours.cuts:
        under = say("replay_tile_one_reset")
    else:
        under = say("replay_tile_resets", n=f"{ours.resets:,}")
    yield _tile(say("replay_tile_cuts"), spaced(f"{ours.cuts:,}"), under, "bad" if ours.resets > ours.cuts else "")
    for name, count, dollars in (
        ("summaries", ours.summaries, ours.summary_dollars),
        ("readings", ours.readings, ours.reading_dollars),
    ):
        share = percent(dollars / ours.dollars if ours.dollars else 0.0)
        yield _tile(say(f"replay_tile_{name}"), spaced(f"{count:,}"), say("replay_tile_share", share=share))
    refused = ours.over + ours.invalid
    under = say("replay_tile_none_refused")
    if refused:
        under = say("replay_tile_some_refused", over=f"{ours.over:,}", invalid=f"{ours.invalid:,}")
    yield _tile(say("replay_tile_refused"), spaced(f"{refused:,}"), under, "bad" if refused else "")


def _notes(scene: Scene, record: Billed | None, say: Wording) -> Iterator[str]:
    whole, ours = scene.whole, scene.ours
    if whole and scene.longest:
        longest = f"{scene.longest:,}"
        if scene.longest > scene.window:
            all_requests = f"{whole.requests:,}"
            yield say("replay_note_impossible", longest=longest, n=f"{whole.over:,}", all=all_requests)
        else:
            yield say("replay_note_fit", longest=longest)
    if ours:
        yield from _notes_on_ours(ours, len(scene.sessions), say)
    if record:
        yield from _notes_on_record(record, len(scene.sessions), say)


def _notes_on_ours(ours: ReplayResult, sessions: int, say: Wording) -> Iterator[str]:
    if ours.over + ours.invalid:
        yield say("replay_note_refused", n=f"{ours.over + ours.invalid:,}")
    yield say("replay_note_broken", n=f"{ours.broken:,}") if ours.broken else say("replay_note_steady")
    if ours.dearer:
        yield say("replay_note_dearer", n=f"{ours.dearer:,}")
    elif sessions > 1:
        yield say("replay_note_never_dearer")
    if ours.summaries and ours.likely_percent - ours.kept_percent > 0.05:
        yield say("replay_note_likely", likely=percent(ours.likely_percent / 100))


def _notes_on_record(record: Billed, sessions: int, say: Wording) -> Iterator[str]:
    counted = (
        ""
        if record.sessions == sessions
        else say("replay_note_recorded", n=f"{record.sessions:,}", all=f"{sessions:,}")
    )
    unpriced = sum(one.requests for one in record.models if one.dollars is None)
    missing = say("replay_note_unpriced", n=f"{unpriced:,}") if unpriced else ""
    yield say.joined(counted, missing, say("replay_note_not_alike"))


BY_MODEL = ("model", "dollars", "requests", "prompt", "read", "written", "output")


def _by_model(record: Billed, say: Wording) -> str:
    rows = [
        (
            (
                escape(one.model),
                money(one.dollars),
                spaced(f"{one.requests:,}"),
                *(tokens_short(tokens) for tokens in (one.prompt, one.read, one.written, one.output)),
            ),
            False,
        )
        for one in record.models
    ]
    head = [say(f"replay_column_{name}") for name in BY_MODEL]
    return f"<details><summary>{escape(say('replay_by_model'))}</summary>{table(head, rows)}</details>"
