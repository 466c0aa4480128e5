"""The token map as one HTML page: no request to anywhere, readable on a telephone, in the dark and on paper.

Same inspection, same bytes. The browser is told to run our one script and nothing else, so a text that
slipped through would still be only text.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from itertools import accumulate
from string import Template

from everlong import __version__
from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import figure, gauge, history_picture, said, swatch
from everlong.cli.maps.page_lists import card, edit_tables, lists
from everlong.cli.maps.page_messages import round_list
from everlong.cli.maps.rows import SCHEMAS, State, fates_of, segments_of, totals_of
from everlong.cli.terminal.tables import percent
from everlong.cli.words.wording import Words

__all__ = ["page_of"]

#: Our one style and our one script, known by their hashes; everything else is refused.
POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"


def page_of(shown: Inspection, say: Words, *, top: int = 10) -> str:
    """The page. `top` is how many rows its lists have, 0 for all; its rounds and messages are always all."""
    style, script = _style(), _resource("page.js")
    sections = (_header(shown, say), _window(shown, say), _history(shown, say), _plan(shown, say))
    return Template(_resource("page.html")).substitute(
        language=say.language.tag,
        policy=POLICY.format(style=_hash(style), script=_hash(script)),
        title=f"{said(shown.name)} · {said(say('title'))}",
        style=style,
        content="\n".join(filter(None, (*sections, lists(shown, say, top), _rounds(shown, say)))),
        version=__version__,
        footer=said(say("footer")),
        script=script,
    )


def _resource(name: str) -> str:
    return files("everlong.cli.maps").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    return _resource("page.css") + "".join(f".w{n}{{width:{n}%}}" for n in range(101))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _header(shown: Inspection, say: Words) -> str:
    facts = (
        shown.fmt,
        shown.map.model or say("unknown_model"),
        say.many("messages", len(shown.map.messages)),
        say.many("rounds", len(shown.map.rounds)),
    )
    listed = "".join(f"<span>{said(fact)}</span>" for fact in facts)
    return (
        f'<header class="top"><p class="brand"><b>everlong</b> {said(say("title"))}</p>'
        f'<h1>{said(shown.name)}</h1><p class="facts">{listed}</p></header>'
    )


def _window(shown: Inspection, say: Words) -> str:
    """The total against the window."""
    context, kept = shown.room.context, shown.budget.reply + shown.budget.margin
    sent = [row for row in shown.rows if shown.is_sent(row.index)]
    inside = totals_of([(SCHEMAS, shown.map.schemas), *segments_of(sent)])
    bar = gauge([*inside.items(), ("free", max(0, context - kept - shown.used)), ("reply", kept)], _mark(shown))
    share = say("of_window", share=say.share(shown.used, shown.used_at_most, context), n=figure(context))
    if shown.problems:
        pill = f'<span class="pill bad">✗ {said(say.many("problem_count", len(shown.problems)))}</span>'
    else:
        pill = f'<span class="pill">✓ {said(say("accepted", fmt=shown.checked_for))}</span>'
    note = ""
    if shown.sent_from > shown.head:
        text = say("compacted", n=figure(shown.map.total), at=f"#{shown.sent_from}")
        note = f'<p class="note">{said(text)}</p>'
    about = "≈\u202f" if shown.spread else ""
    return (
        f'<section class="card"><div class="sum"><span class="big">{about}{figure(shown.used)}</span>'
        f'<span class="unit">{said(say("column_tokens"))}</span><span class="share">{said(share)}</span>{pill}</div>'
        f"{bar}{_figures(shown, say)}{note}</section>"
    )


def _mark(shown: Inspection) -> float | None:
    """Where the window ends on the gauge, if more than fits is on it."""
    kept = shown.budget.reply + shown.budget.margin
    return shown.room.context / (shown.used + kept) if shown.used + kept > shown.room.context else None


def _figures(shown: Inspection, say: Words) -> str:
    over = shown.free < 0
    weights, room = shown.map, shown.room
    counted = say("vocabulary", name=weights.vocabulary)
    if shown.spread:
        counted += say("comma") + say("at_most", n=figure(shown.used_at_most))
    source = say(f"source_{room.source}", **({"date": room.date} if room.source == "registry" else {}))
    if room.conflicts:
        named = say("comma").join(f"{claimant} {figure(tokens)}" for claimant, tokens in room.conflicts[:2])
        source = f"{source}{say('semicolon')}{say('others_say', list=named)}"
    rows = (
        (
            say("over" if over else "free"),
            f'<span class="{"bad" if over else "good"}">{figure(abs(shown.free))}</span>',
            "",
        ),
        (say("reply"), figure(shown.budget.reply), ""),
        (say("margin"), figure(shown.budget.margin), ""),
        (say("window"), figure(room.context), source),
        (say("counting"), said(say("estimated" if shown.spread else "exact")), counted),
    )
    return (
        '<dl class="figures">'
        + "".join(
            f"<div><dt>{said(name)}</dt><dd>{value}{f'<small>{said(beside)}</small>' if beside else ''}</dd></div>"
            for name, value, beside in rows
        )
        + "</dl>"
    )


def _history(shown: Inspection, say: Words) -> str:
    """The whole history as one picture, with its legend."""
    segments = [(SCHEMAS, shown.map.schemas), *segments_of(shown.rows)]
    starts = [shown.map.schemas, *accumulate((m.tokens for m in shown.map.messages), initial=shown.map.schemas)][1:]
    rounds = [(number, starts[weight.start]) for number, weight in enumerate(shown.map.rounds, start=1)]
    cuts = [starts[at] for at in shown.boundaries if at < len(starts)]
    past = starts[shown.sent_from] if shown.sent_from > shown.head else 0
    layers = (
        [segments]
        if shown.plan is None
        else [segments, [(State.STAYS.value, shown.map.schemas), *fates_of(shown.rows)]]
    )
    picture = history_picture(layers, rounds, cuts, past)
    picture = picture.replace("<svg ", f'<svg data-front="{shown.map.schemas}" aria-label="{said(say("history"))}" ', 1)
    totals = totals_of(segments)
    keys = "".join(
        f'<button type="button" data-k="{name}" aria-pressed="false">{swatch(name)}{said(say.name(name))} '
        f'<span class="soft">{percent(tokens, shown.map.total)}</span></button>'
        for name, tokens in totals.items()
    )
    if cuts:
        keys += f'<span class="key"><i class="line"></i>{said(say("boundary"))}</span>'
    states = ""
    if shown.plan is not None:
        states = "".join(
            f'<button type="button" data-k="{state}" aria-pressed="false">{swatch(state)}{said(say(state))}</button>'
            for state in (State.STAYS, State.TRIMMED, State.GOES, State.OURS)
        )
        states = f'<div class="legend">{states}</div>'
    legend = f'<div class="legend">{keys}</div>{states}'
    return card(say("history"), picture + legend, said(say("history_hint")))


def _plan(shown: Inspection, say: Words) -> str:
    """What a budget does: one bar for what would be sent, and the list of edits."""
    plan = shown.plan
    if plan is None:
        return ""
    if not plan.edits:
        return card(say("fitted", n=figure(plan.budget)), f'<p class="fine">{said(say("fits_already"))}</p>')
    kept = {State.STAYS.value: shown.map.schemas, State.TRIMMED.value: 0}
    for row in shown.rows:
        if row.state.value in kept:
            kept[row.state.value] += row.after or 0
    ours = sum(row.tokens for row in plan.added)
    bar = gauge([*kept.items(), (State.OURS.value, ours), ("free", max(0, plan.budget - plan.tokens))], None)
    figures = say("before_after", before=figure(plan.before), after=figure(plan.tokens))
    hint = f"{said(figures)} · {said(say.many('edit_count', len(plan.edits)))}"
    return card(say("fitted", n=figure(plan.budget)), bar + edit_tables(plan, say), hint)


def _rounds(shown: Inspection, say: Words) -> str:
    find = said(say("find"))
    tools = (
        f'<div class="tools"><input id="find" type="search" placeholder="{find}" aria-label="{find}">'
        f'<span id="found" class="hint" data-text="{said(say("found", n="0"))}"></span></div>'
    )
    return card(say("all_rounds"), tools + round_list(shown, say), said(say("rounds_hint")))
