"""The result of a replay on a terminal: what was really paid, a table for each window, and a verdict in plain words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.lab import (
    Billed,
    Recorded,
    ReplayPlan,
    ReplayResult,
    Scene,
    SessionFacts,
    billed,
    money,
    scenes,
    tokens_short,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Whose", "draw", "print_replay"]

SAME = 0.005  # of the uncompacted cost: a smaller difference is not mentioned
CREDIT = 0.05  # points that summaries must add to be mentioned
WIDEST = 1_000  # columns; no terminal is wider
MANY = 100  # from here on, tenths are not shown
RECORDED = ("model", "requests", "sent", "cached", "received", "cost")
PLAYED = (
    "policy",
    "cost",
    "of_uncut",
    "kept",
    "literal",
    "cuts",
    "resets",
    "storms",
    "summaries",
    "summary_cost",
    "readings",
    "refused",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """What the verdict is about.

    - `yours`: whether the sessions are the user's own, not those of the data folder.
    - `window`: the context window of the sessions' model, if it is replayed because no other was named.
    """

    yours: bool
    window: int | None = None


def print_replay(
    plan: ReplayPlan,
    results: Sequence[ReplayResult],
    thresholds: Sequence[ReplayResult],
    language: Language,
    whose: Whose,
) -> None:
    """Print what was paid, then for each window its policies and auto at other thresholds, then the verdict."""
    out, say = console(), Words(language, "replay")
    sessions = [played.session for played in results[0].played]
    for line in _head(plan, sessions, say):
        out.print(line)
    out.print()
    record = billed(sessions)
    if record is None:
        out.print(say("not_recorded"), style="dim")
    else:
        out.print(say("recorded"), style="bold")
        draw(out, [say(name) for name in RECORDED], _paid_rows(record, say))
        for line in _on_record(record, len(sessions), say):
            out.print(line, style="dim")
    for scene in scenes(results):
        out.print()
        out.print(_title(plan, scene, say), style="bold")
        place = (scene.window, scene.front)
        others = [each for each in thresholds if (each.window, each.front) == place and each not in scene.results]
        draw(out, [say(name) for name in PLAYED], [_played_row(result) for result in (*scene.results, *others)])
        for line in _notes(scene, say):
            out.print(line, style="dim")
        for line in _window_verdict(scene.ours, say) if scene.ours else ():
            out.print(line)
    sentence = _verdict(plan, results, whose, say)
    if sentence:
        out.print()
        out.print(sentence, style="bold")


def _title(plan: ReplayPlan, scene: Scene, say: Words) -> str:
    """Return the title of a table: the window, and the overhead if several were played."""
    window = say("window", n=amount(scene.window))
    if len(plan.overheads) == 1:
        return window
    return say("comma").join((window, say("overhead", n=amount(scene.front))))


def draw(out: "Console", head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; its columns move closer together if they would not fit otherwise."""
    drawn = table(head, rows)
    drawn.show_edge = False
    drawn.padding = (0, 1, 0, 0)
    if out.measure(drawn, options=out.options.update(width=WIDEST)).maximum > out.width:
        drawn.padding = 0
    out.print(drawn)


def _head(plan: ReplayPlan, sessions: Sequence[SessionFacts], say: Words) -> Iterator[str]:
    tokens = sum(session.tokens for session in sessions)
    size = (say.many("sessions", len(sessions)), say("tokens", n=tokens_short(tokens)))
    yield say("comma").join((*size, say("prices", name=plan.tariff.name)))
    if plan.model != plan.tariff.name:
        yield say("counted", model=plan.model)
    yield say("around", front=" / ".join(map(amount, plan.overheads)), reply=amount(plan.reply))


# --- what was really paid ----------------------------------------------------------------------


def _paid_rows(record: Billed, say: Words) -> list[tuple[str, ...]]:
    rows = [_paid_row(model.model, [model]) for model in record.models]
    return [*rows, _paid_row(say("all_models"), record.models)] if len(rows) > 1 else rows


def _paid_row(name: str, models: Sequence[Recorded]) -> tuple[str, ...]:
    prompt, read = sum(model.prompt for model in models), sum(model.read for model in models)
    known = [model.dollars for model in models if model.dollars is not None]
    return (
        name,
        amount(sum(model.requests for model in models)),
        tokens_short(prompt),
        percent(read, prompt),
        tokens_short(sum(model.output for model in models)),
        money(sum(known) if known else None),
    )


def _on_record(record: Billed, sessions: int, say: Words) -> Iterator[str]:
    if record.sessions < sessions:
        yield say.many("recorded_some", record.sessions, all=amount(sessions))
    unpriced = sum(model.requests for model in record.models if model.dollars is None)
    if unpriced:
        yield say.many("recorded_unpriced", unpriced)


# --- what was played ---------------------------------------------------------------------------


def _played_row(result: ReplayResult) -> tuple[str, ...]:
    sessions = len(result.played) or 1
    return (
        result.policy,
        money(result.dollars),
        f"{result.ratio:.2f}",
        f"{result.kept_percent:.1f}" if result.probes else "–",
        f"{result.literal_percent:.1f}" if result.probes else "–",
        _mean(result.cuts / sessions),
        _mean(result.resets / sessions),
        _count(result.storms),
        _count(result.summaries),
        money(result.summary_dollars) if result.summaries else "–",
        _count(result.readings),
        _count(result.over + result.invalid),
    )


def _mean(figure: float) -> str:
    return f"{figure:.1f}" if figure < MANY else f"{figure:.0f}"


def _count(number: int) -> str:
    return amount(number) if number else "–"


def _notes(scene: Scene, say: Words) -> Iterator[str]:
    yield say("each")
    if scene.longest > scene.window:
        yield say("longest", n=amount(scene.longest))
    for result in scene.results:
        if result.likely_percent - result.kept_percent > CREDIT:
            yield say("likely", policy=result.policy, share=f"{result.likely_percent:.1f} %")


# --- the verdict -------------------------------------------------------------------------------


def _verdict(plan: ReplayPlan, results: Sequence[ReplayResult], whose: Whose, say: Words) -> str:
    """Return the result in one sentence; "" if everlong was not played.

    It is about the model's own window, or else about the window in which everlong costs the least.
    """
    ours = min(
        (scene.ours for scene in scenes(results) if scene.ours and whose.window in (None, scene.window)),
        key=lambda result: result.dollars,
        default=None,
    )
    if ours is None:
        return ""
    sessions, place = len(ours.played), "verdict_window" if whose.window is None else "verdict_own_window"
    figures = {
        "whose": say("your" if whose.yours else "these"),
        "uncut": money(ours.uncut),
        "prices": plan.tariff.name,
        "window": say(place, n=amount(ours.window), model=plan.model),
    }
    change = ours.ratio - 1
    if abs(change) < SAME:
        sentence = say.many("verdict_same", sessions, **figures)
    else:
        sign = "−" if change < 0 else "+"
        figures |= {"ours": money(ours.dollars), "change": f"{sign}{100 * abs(change):.0f} %"}
        sentence = say.many("verdict_changed", sessions, **figures)
    kept = say("verdict_kept", kept=f"{ours.kept_percent:.0f} %") if ours.probes else say("verdict_unprobed")
    return sentence + kept


def _window_verdict(ours: ReplayResult, say: Words) -> Iterator[str]:
    """Yield a line for each finding about everlong in one window."""
    change = ours.ratio - 1
    key = "same" if abs(change) < SAME else "less" if change < 0 else "more"
    share = f"{100 * abs(change):.0f} %"
    yield say(key, policy=ours.policy, ours=money(ours.dollars), uncut=money(ours.uncut), share=share)
    if ours.probes:
        kept, literal = (f"{figure:.1f} %" for figure in (ours.kept_percent, ours.literal_percent))
        yield say.many("stays", ours.probes, kept=kept, literal=literal)
    else:
        yield say("unprobed")
    refused = ours.over + ours.invalid
    if refused:
        yield say.many("invalid", refused, over=amount(ours.over), invalid=amount(ours.invalid))
    else:
        yield say("valid")
    if ours.broken:
        yield say.many("broken", ours.broken)
    if ours.storms:
        yield say.many("storms_told", ours.storms)
    if ours.dearer:
        yield say.many("dearer", ours.dearer)
    if ours.needless:
        yield say.many("needless", len(ours.needless))
