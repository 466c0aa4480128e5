"""The pictures of a replay, each a card with words and a table: cost over turns, the front, the thresholds."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from everlong.lab.replay.results import Played, ReplayResult
from everlong.lab.report.numbers import grouped, money, percent
from everlong.lab.report.plots import Axis, Dot, Mark, dot_plot, value_plot
from everlong.lab.report.replay_figures import (
    Scene,
    Threshold,
    answer_costs,
    front,
    growth,
    running_total,
    scenes,
    thresholds_of,
    turn_costs,
)
from everlong.lab.report.sheet import card, figure, table
from everlong.lab.report.svg import Line
from everlong.lab.report.wording import Wording

__all__ = ["front_card", "thresholds_card", "turns_card"]

MOST_MARKS = 150  # more would merge into a band
ROOM = 1.5  # times the dearer of uncut and ours: the height of a picture of dollars
DEAREST = 200.0  # % of uncut: the end of the axis of the front


def name_of(policy: str, say: Wording) -> str:
    """Return the name of a policy on the page."""
    return say.known(f"replay_policy_{policy}", policy)


def _dollars(value: float) -> str:
    """Return a round sum for an axis. Example: 0.2 -> $0.20, 0.005 -> $0.005, 1000.0 -> $1,000"""
    whole, _, cents = f"{value:,.6f}".rstrip("0").partition(".")
    return f"${whole}.{cents:0<2}" if cents else f"${whole}"


# --- cost over turns -----------------------------------------------------------------------------


def turns_card(scene: Scene, say: Wording) -> str:
    """Return the card with the cost of request n, and the cost of one conversation so far."""
    costs = [(result, turn_costs(result)) for result in scene.results]
    lines = [_line(result, points, scene, say) for result, points in costs]
    lone = len(scene.sessions) == 1
    played = {result.policy: _dearest(result, scene) for result in scene.results}
    mine = played.get(scene.ours.policy) if scene.ours else None
    marks = list(_marks(mine, say)) if mine else []
    x = Axis(say("replay_turn_x"), grouped)
    y = Axis(say("replay_turn_one_y" if lone else "replay_turn_y"), _dollars, _most(lines))
    first = value_plot(lines, x, y, label=say("replay_turn"), marks=marks if lone else ())
    strokes = say("replay_marks") if marks else ""
    caption = say.joined(say("replay_turn_one_caption" if lone else "replay_turn_caption"), strokes if lone else "")
    body = f"<h3>{escape(say('replay_turn'))}</h3>{_grown(scene, say)}{figure(first, caption)}"
    totals = [
        _line(result, running_total(conversation), scene, say)
        for result in scene.results
        if (conversation := played[result.policy])
    ]
    total_y = Axis(say("replay_total_y"), _dollars, _most(totals))
    second = value_plot(totals, x, total_y, label=say("replay_total"), marks=marks)
    dearest = "" if lone or not scene.sessions else say("replay_total_dearest", name=scene.sessions[0].id)
    body += f"<h3>{escape(say('replay_total'))}</h3>{figure(second, say.joined(dearest, strokes))}"
    return card(say("replay_turns"), body, _facts(scene, say)) if first else ""


def _facts(scene: Scene, say: Wording) -> tuple[str, str, str]:
    return (
        say("replay_window", n=f"{scene.window:,}"),
        say("replay_overhead", n=f"{scene.front:,}"),
        say("replay_prices", name=scene.tariff),
    )


def _line(result: ReplayResult, points: tuple[tuple[float, float], ...], scene: Scene, say: Wording) -> Line:
    return Line(name_of(result.policy, say), points, result is scene.ours, plain=result is scene.whole)


def _most(lines: Sequence[Line]) -> float:
    """Return the height of a picture: anything far dearer than uncut and ours would flatten them."""
    shown = [value for line in lines if line.ours or line.plain for _, value in line.points]
    return ROOM * max(shown, default=math.inf) or math.inf


def _grown(scene: Scene, say: Wording) -> str:
    """Return in words what the first picture shows."""
    if scene.whole is None or scene.ours is None:
        return ""
    plain, ours = growth(turn_costs(scene.whole)), growth(turn_costs(scene.ours))
    if plain is None or ours is None:
        return ""
    words = say(
        "replay_growth",
        start=grouped(ours[0]),
        end=grouped(ours[1]),
        uncut=say("replay_times", times=f"{plain[2]:.1f}"),
        ours=say("replay_times", times=f"{ours[2]:.1f}"),
    )
    return f'<p class="told">{escape(words)}</p>'


def _dearest(result: ReplayResult, scene: Scene) -> Played | None:
    """Return the conversation that costs the most uncut, under this policy."""
    return next((played for played in result.played if scene.sessions and played.session == scene.sessions[0]), None)


def _marks(played: Played, say: Wording) -> Iterator[Mark]:
    answers = answer_costs(played)
    if sum(answer.cut or answer.summaries > 0 for answer in answers) > MOST_MARKS:
        return
    for at, answer in enumerate(answers, start=1):
        if answer.cut:
            yield Mark(at, say("replay_mark_cut", at=f"{at:,}"))
        if answer.summaries:
            yield Mark(at, say("replay_mark_summary", at=f"{at:,}"), round=True)


# --- the front -----------------------------------------------------------------------------------


def front_card(scene: Scene, say: Wording) -> str:
    """Return the card of cost against what is kept: a dot for each policy, and every figure in a table."""
    ahead = front(scene.results)
    dots = [
        Dot(
            name_of(result.policy, say),
            100 * result.ratio,
            result.literal_percent,
            ours=result is scene.ours,
            faint=bool(result.over or result.invalid),
            plain=result is scene.whole,
            front=result.policy in ahead,
        )
        for result in scene.results
    ]
    x = Axis(say("replay_front_x"), lambda value: percent(value / 100, 0), DEAREST)
    y = Axis(say("replay_front_y"), lambda value: f"{value:.3g}")
    picture = dot_plot(dots, x, y, label=say("replay_front"), at=(say("replay_uncut_line"), 100.0))
    body = figure(picture, say("replay_front_caption")) + _policies(scene, say)
    return card(say("replay_front"), body, _facts(scene, say))


POLICIES = (
    "policy",
    "dollars",
    "ratio",
    "kept",
    "literal",
    "resets",
    "cuts",
    "storms",
    "summaries",
    "readings",
    "over",
    "invalid",
)


def _policies(scene: Scene, say: Wording) -> str:
    rows = []
    for result in sorted(scene.results, key=lambda result: result.ratio):
        about = say.known(f"replay_about_{result.policy.partition('@')[0]}", "")
        name = f'{escape(name_of(result.policy, say))}<span class="about">{escape(about)}</span>'
        counts = (result.resets, result.cuts, result.storms, result.summaries, result.readings)
        cells = [
            name,
            *_figures(result),
            *(grouped(count) for count in counts),
            *map(_wrong, (result.over, result.invalid)),
        ]
        rows.append((cells, result is scene.ours))
    return table([say(f"replay_column_{name}") for name in POLICIES], rows)


def _figures(result: ReplayResult) -> tuple[str, str, str, str]:
    """Return cells: dollars, share of uncut, kept and literal."""
    shares = (f"{result.kept_percent:.1f}", f"{result.literal_percent:.1f}") if result.probes else ("–", "–")
    return (escape(money(result.dollars)), percent(result.ratio), *shares)


def _wrong(count: int) -> str:
    return f'<span class="bad">{grouped(count)}</span>' if count else "0"


# --- thresholds ----------------------------------------------------------------------------------

THRESHOLDS = ("threshold", "dollars", "ratio", "kept", "literal", "cuts")


def thresholds_card(found: Sequence[ReplayResult], results: Sequence[ReplayResult], say: Wording) -> str:
    """Return the card of what a cheaper or safer threshold would have done, window by window."""
    ours = {(scene.window, scene.front, scene.tariff): scene.ours for scene in scenes(results)}
    parts = [f'<p class="rule">{escape(say("replay_thresholds_rule"))}</p>']
    for scene in scenes(found):
        rows = thresholds_of(scene, ours.get((scene.window, scene.front, scene.tariff)))
        parts += [f"<h3>{escape(' · '.join(_facts(scene, say)))}</h3>", _plot(rows, say), _thresholds(rows, say)]
    return card(say("replay_thresholds"), "".join(parts)) if found else ""


def _plot(rows: Sequence[Threshold], say: Wording) -> str:
    placed = [(100 * row.share, row.result) for row in rows if row.share is not None]
    if len(placed) < 2:
        return ""
    lines = [Line(say("replay_threshold_cost"), tuple((x, 100 * result.ratio) for x, result in placed), ours=True)]
    if any(result.probes for _, result in placed):
        kept = Line(say("replay_threshold_kept"), tuple((x, result.kept_percent) for x, result in placed))
        literal = Line(say("replay_threshold_literal"), tuple((x, result.literal_percent) for x, result in placed))
        lines += [kept, literal]
    used = next((100 * row.share for row in rows if row.used and row.share is not None), None)
    x = Axis(say("replay_threshold_x"), lambda value: f"{value:.3g} %")
    y = Axis(say("replay_threshold_y"), lambda value: f"{value:.3g}", DEAREST)
    at = None if used is None else (say("replay_used"), used)
    return figure(value_plot(lines, x, y, label=say("replay_thresholds"), at=at))


def _thresholds(rows: Sequence[Threshold], say: Wording) -> str:
    listed = []
    for row in rows:
        name = escape(row.result.policy) if row.share is None else f"{100 * row.share:.3g} %"
        used = f"<small>{escape(say('replay_used'))}</small>" if row.used else ""
        listed.append(([name + used, *_figures(row.result), grouped(row.result.cuts)], row.used))
    return table([say(f"replay_column_{name}") for name in THRESHOLDS], listed)
