"""The token map as one HTML page that loads nothing, readable on a phone, in the dark and on paper.

The same inspection gives the same bytes. The browser is told to run one script and nothing else, so a text that
escaped escaping would still be only text.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from itertools import accumulate
from string import Template

from everlong import __version__
from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import escaped, figure, gauge, history_picture, swatch
from everlong.cli.maps.page_lists import card, edit_tables, lists
from everlong.cli.maps.page_messages import round_list
from everlong.cli.maps.rows import SCHEMAS, State, segments_of, states_of, totals_of
from everlong.cli.terminal.tables import percent
from everlong.cli.words.wording import Words

__all__ = ["page_of"]

#: Only the one style and the one script are allowed, by their hashes.
POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"


def page_of(inspection: Inspection, say: Words, *, top: int = 10) -> str:
    """Return the page. `top` is the most rows of its lists, 0 for all; rounds and messages are always all there."""
    style, script = _style(), _resource("page.js")
    sections = (_header(inspection, say), _window(inspection, say), _history(inspection, say), _plan(inspection, say))
    return Template(_resource("page.html")).substitute(
        language=say.language.tag,
        policy=POLICY.format(style=_hash(style), script=_hash(script)),
        title=f"{escaped(inspection.name)} · {escaped(say('title'))}",
        style=style,
        content="\n".join(filter(None, (*sections, lists(inspection, say, top), _rounds(inspection, say)))),
        version=__version__,
        footer=escaped(say("footer")),
        script=script,
    )


def _resource(name: str) -> str:
    return files("everlong.cli.maps").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    return _resource("page.css") + "".join(f".w{n}{{width:{n}%}}" for n in range(101))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _header(inspection: Inspection, say: Words) -> str:
    facts = (
        inspection.fmt,
        inspection.map.model or say("unknown_model"),
        say.many("messages", len(inspection.map.messages)),
        say.many("rounds", len(inspection.map.rounds)),
    )
    listed = "".join(f"<span>{escaped(fact)}</span>" for fact in facts)
    return (
        f'<header class="top"><p class="brand"><b>everlong</b> {escaped(say("title"))}</p>'
        f'<h1>{escaped(inspection.name)}</h1><p class="facts">{listed}</p></header>'
    )


def _window(inspection: Inspection, say: Words) -> str:
    """Return the total against the window."""
    context, kept = inspection.meter.limit, inspection.budget.reply + inspection.budget.margin
    sent = [row for row in inspection.rows if inspection.is_sent(row.index)]
    inside = totals_of([(SCHEMAS, inspection.map.schemas), *segments_of(sent)])
    bar = gauge(
        [*inside.items(), ("free", max(0, context - kept - inspection.meter.tokens)), ("reply", kept)],
        _mark(inspection),
    )
    share = say(
        "of_window", share=say.share(inspection.meter.tokens, inspection.used_at_most, context), n=figure(context)
    )
    if inspection.problems:
        pill = f'<span class="pill bad">✗ {escaped(say.many("problem_count", len(inspection.problems)))}</span>'
    else:
        pill = f'<span class="pill">✓ {escaped(say("accepted", fmt=inspection.checked_for))}</span>'
    note = ""
    if inspection.sent_from > inspection.head:
        text = say("compacted", n=figure(inspection.map.total), at=f"#{inspection.sent_from}")
        note = f'<p class="note">{escaped(text)}</p>'
    about = "≈\u202f" if inspection.spread else ""
    return (
        f'<section class="card"><div class="sum"><span class="big">{about}{figure(inspection.meter.tokens)}</span>'
        f'<span class="unit">{escaped(say("column_tokens"))}</span>'
        f'<span class="share">{escaped(share)}</span>{pill}</div>'
        f"{bar}{_figures(inspection, say)}{note}</section>"
    )


def _mark(inspection: Inspection) -> float | None:
    """Return where the window ends on the gauge, if the conversation is larger."""
    kept = inspection.budget.reply + inspection.budget.margin
    return (
        inspection.meter.limit / (inspection.meter.tokens + kept)
        if inspection.meter.tokens + kept > inspection.meter.limit
        else None
    )


def _figures(inspection: Inspection, say: Words) -> str:
    over = inspection.free < 0
    weights, limits = inspection.map, inspection.window
    counted = say("vocabulary", name=weights.vocabulary)
    if inspection.spread:
        counted += say("comma") + say("at_most", n=figure(inspection.used_at_most))
    source = say(f"source_{limits.source}", **({"date": limits.date} if limits.source == "registry" else {}))
    if limits.conflicts:
        named = say("comma").join(f"{claimant} {figure(tokens)}" for claimant, tokens in limits.conflicts[:2])
        source = f"{source}{say('semicolon')}{say('others_say', list=named)}"
    rows = (
        (
            say("over" if over else "free"),
            f'<span class="{"bad" if over else "good"}">{figure(abs(inspection.free))}</span>',
            "",
        ),
        (say("reply"), figure(inspection.budget.reply), ""),
        (say("margin"), figure(inspection.budget.margin), ""),
        (say("window"), figure(limits.context), source),
        (say("counting"), escaped(say("estimated" if inspection.spread else "exact")), counted),
    )
    return (
        '<dl class="figures">'
        + "".join(
            f"<div><dt>{escaped(name)}</dt>"
            f"<dd>{value}{f'<small>{escaped(beside)}</small>' if beside else ''}</dd></div>"
            for name, value, beside in rows
        )
        + "</dl>"
    )


def _history(inspection: Inspection, say: Words) -> str:
    """Return the whole history as one picture with its legend."""
    segments = [(SCHEMAS, inspection.map.schemas), *segments_of(inspection.rows)]
    starts = [
        inspection.map.schemas,
        *accumulate((m.tokens for m in inspection.map.messages), initial=inspection.map.schemas),
    ][1:]
    rounds = [(number, starts[weight.start]) for number, weight in enumerate(inspection.map.rounds, start=1)]
    cuts = [starts[at] for at in inspection.boundaries if at < len(starts)]
    past = starts[inspection.sent_from] if inspection.sent_from > inspection.head else 0
    layers = (
        [segments]
        if inspection.plan is None
        else [segments, [(State.STAYS.value, inspection.map.schemas), *states_of(inspection.rows)]]
    )
    picture = history_picture(layers, rounds, cuts, past)
    picture = picture.replace(
        "<svg ", f'<svg data-front="{inspection.map.schemas}" aria-label="{escaped(say("history"))}" ', 1
    )
    totals = totals_of(segments)
    keys = "".join(
        f'<button type="button" data-k="{name}" aria-pressed="false">{swatch(name)}{escaped(say.name(name))} '
        f'<span class="soft">{percent(tokens, inspection.map.total)}</span></button>'
        for name, tokens in totals.items()
    )
    if cuts:
        keys += f'<span class="key"><i class="line"></i>{escaped(say("boundary"))}</span>'
    states = ""
    if inspection.plan is not None:
        states = "".join(
            f'<button type="button" data-k="{state}" aria-pressed="false">{swatch(state)}{escaped(say(state))}</button>'
            for state in (State.STAYS, State.TRIMMED, State.GOES, State.OURS)
        )
        states = f'<div class="legend">{states}</div>'
    legend = f'<div class="legend">{keys}</div>{states}'
    return card(say("history"), picture + legend, escaped(say("history_hint")))


def _plan(inspection: Inspection, say: Words) -> str:
    """Return what a budget does: a bar for what would be sent, and the edits."""
    plan = inspection.plan
    if plan is None:
        return ""
    if not plan.edits:
        return card(say("fitted", n=figure(plan.budget)), f'<p class="fine">{escaped(say("fits_already"))}</p>')
    kept = {State.STAYS.value: inspection.map.schemas, State.TRIMMED.value: 0}
    for row in inspection.rows:
        if row.state.value in kept:
            kept[row.state.value] += row.after or 0
    ours = sum(row.tokens for row in plan.added)
    bar = gauge([*kept.items(), (State.OURS.value, ours), ("free", max(0, plan.budget - plan.tokens))], None)
    figures = say("before_after", before=figure(plan.before), after=figure(plan.tokens))
    hint = f"{escaped(figures)} · {escaped(say.many('edit_count', len(plan.edits)))}"
    return card(say("fitted", n=figure(plan.budget)), bar + edit_tables(plan, say), hint)


def _rounds(inspection: Inspection, say: Words) -> str:
    find = escaped(say("find"))
    tools = (
        f'<div class="tools"><input id="find" type="search" placeholder="{find}" aria-label="{find}">'
        f'<span id="found" class="hint" data-text="{escaped(say("found", n="0"))}"></span></div>'
    )
    return card(say("all_rounds"), tools + round_list(inspection, say), escaped(say("rounds_hint")))
