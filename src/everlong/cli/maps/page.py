"""The token map as one HTML page that loads nothing, readable on a phone, in the dark and on paper.

The same inspection gives the same bytes. The browser may run one script and nothing else, so even a text that was not
escaped would stay text.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import accumulate
from string import Template

from everlong import __version__
from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import escaped, gauge, history_picture, linked, meter, swatch
from everlong.cli.maps.page_messages import round_list
from everlong.cli.maps.rows import NEAREST, SCHEMAS, Plan, Row, State, causes_of, segments_of, states_of, totals_of
from everlong.cli.terminal.tables import amount, percent
from everlong.cli.words.wording import Words
from everlong.core import Action

__all__ = ["page_of"]

#: Only the one style and the one script are allowed, by their hashes.
POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
PLACES_NAMED = 4
MOST_EDITS = 1_000  # listed one by one
STATE_OF = {
    Action.SHORTEN: State.TRIMMED.value,
    Action.DROP: State.GOES.value,
    Action.INSERT: State.OURS.value,
    Action.REPAIR: State.TRIMMED.value,
}


def page_of(inspection: Inspection, say: Words, *, top: int = 10) -> str:
    """Return the page. `top` is the most rows of its lists, 0 for all; rounds and messages are always complete."""
    style, script = _style(), _resource("page.js")
    sections = (_header(inspection, say), _window(inspection, say), _history(inspection, say), _plan(inspection, say))
    return Template(_resource("page.html")).substitute(
        language=say.language.tag,
        policy=POLICY.format(style=_hash(style), script=_hash(script)),
        title=f"{escaped(inspection.name)} · {escaped(say('title'))}",
        style=style,
        content="\n".join(filter(None, (*sections, _lists(inspection, say, top), _rounds(inspection, say)))),
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
    """Return the total compared with the window."""
    context, kept = inspection.meter.limit, inspection.budget.reply + inspection.budget.margin
    sent = [row for row in inspection.rows if inspection.is_sent(row.index)]
    inside = totals_of([(SCHEMAS, inspection.map.schemas), *segments_of(sent)])
    bar = gauge(
        [*inside.items(), ("free", max(0, context - kept - inspection.meter.tokens)), ("reply", kept)],
        _mark(inspection),
    )
    share = say(
        "of_window", share=say.share(inspection.meter.tokens, inspection.used_at_most, context), n=amount(context)
    )
    if inspection.problems:
        pill = f'<span class="pill bad">✗ {escaped(say.many("problem_count", len(inspection.problems)))}</span>'
    else:
        pill = f'<span class="pill">✓ {escaped(say("accepted", fmt=inspection.checked_for))}</span>'
    note = ""
    if inspection.sent_from > inspection.head:
        text = say("compacted", n=amount(inspection.map.total), at=f"#{inspection.sent_from}")
        note = f'<p class="note">{escaped(text)}</p>'
    about = "≈\u202f" if inspection.spread else ""
    return (
        f'<section class="card"><div class="sum"><span class="big">{about}{amount(inspection.meter.tokens)}</span>'
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
        counted += say("comma") + say("at_most", n=amount(inspection.used_at_most))
    source = say(f"source_{limits.source}", **({"date": limits.date} if limits.source == "registry" else {}))
    if limits.conflicts:
        named = say("comma").join(f"{claimant} {amount(tokens)}" for claimant, tokens in limits.conflicts[:2])
        source = f"{source}{say('semicolon')}{say('others_say', list=named)}"
    rows = (
        (
            say("over" if over else "free"),
            f'<span class="{"bad" if over else "good"}">{amount(abs(inspection.free))}</span>',
            "",
        ),
        (say("reply"), amount(inspection.budget.reply), ""),
        (say("margin"), amount(inspection.budget.margin), ""),
        (say("window"), amount(limits.context), source),
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
    return _card(say("history"), picture + legend, escaped(say("history_hint")))


def _plan(inspection: Inspection, say: Words) -> str:
    """Return what a budget does: a bar for what would be sent, and the edits."""
    plan, wrong = inspection.plan, inspection.impossible
    if wrong is not None:
        why = escaped(say.reason(str(wrong)))
        return _card(say("impossible", n=amount(wrong.limit)), f'<p class="wrong">{why}</p>')
    if plan is None:
        return ""
    if not plan.edits:
        return _card(say("fitted", n=amount(plan.budget)), f'<p class="fine">{escaped(say("fits_already"))}</p>')
    kept = {State.STAYS.value: inspection.map.schemas, State.TRIMMED.value: 0}
    for row in inspection.rows:
        if row.state.value in kept:
            kept[row.state.value] += row.after or 0
    ours = sum(row.tokens for row in plan.added)
    bar = gauge([*kept.items(), (State.OURS.value, ours), ("free", max(0, plan.budget - plan.tokens))], None)
    figures = say("before_after", before=amount(plan.before), after=amount(plan.tokens))
    hint = f"{escaped(figures)} · {escaped(say.many('edit_count', len(plan.edits)))}"
    return _card(say("fitted", n=amount(plan.budget)), bar + _edit_tables(plan, say), hint)


def _edit_tables(plan: Plan, say: Words) -> str:
    """Return the changes of a budget: by cause, and one by one with the reference to the original."""
    sizes = (("", say("column_before")), ("", say("column_after")))
    causes = _table(
        (("left", ""), ("what", say("column_why")), ("", say("column_edits")), *sizes),
        (
            (
                _action(cause.action, say),
                escaped(say.step(cause.step, cause.action)),
                *map(amount, (cause.edits, cause.before, cause.after)),
            )
            for cause in causes_of(plan.edits)
        ),
    )
    kept = plan.edits[:MOST_EDITS]
    edits = _table(
        (("", ""), ("left", ""), ("what", say("column_why")), *sizes, ("left", say("column_ref"))),
        (
            (
                linked(edit.at),
                _action(edit.action, say),
                escaped(say.reason(edit.reason)),
                amount(edit.before),
                amount(edit.after),
                f"<code>{escaped(edit.ref or '')}</code>",
            )
            for edit in kept
        ),
    )
    more = _more(say, len(plan.edits) - len(kept))
    title = escaped(say.many("edit_count", len(plan.edits)))
    return f'{causes}<details class="all"><summary>{title}</summary>{edits}{more}</details>'


def _action(action: Action, say: Words) -> str:
    return f'<span class="tag {STATE_OF[action]}">{escaped(say(action.value))}</span>'


def _rounds(inspection: Inspection, say: Words) -> str:
    find = escaped(say("find"))
    tools = (
        f'<div class="tools"><input id="find" type="search" placeholder="{find}" aria-label="{find}">'
        f'<span id="found" class="hint" data-text="{escaped(say("found", n="0"))}"></span></div>'
    )
    return _card(say("all_rounds"), tools + round_list(inspection, say), escaped(say("rounds_hint")))


# --- lists -------------------------------------------------------------------------------------


def _lists(inspection: Inspection, say: Words, top: int) -> str:
    """Return all lists in the order of the page."""
    shares = (
        f'<div class="columns">{_roles(inspection, say)}{_kinds(inspection, say)}{_tools(inspection, say, top)}</div>'
    )
    beside = _protected(inspection, say, top) + _repeats(inspection, say, top)
    heavy = f'<div class="columns wide">{_heaviest(inspection, say, top)}<div class="stack">{beside}</div></div>'
    return _problems(inspection, say, top) + _warnings(inspection, say, top) + shares + heavy


def _problems(inspection: Inspection, say: Words, top: int) -> str:
    if not inspection.problems:
        return ""
    kept = inspection.problems[: top or None]
    rows = []
    for problem, at in zip(kept, inspection.problem_places, strict=False):
        place = f"{linked(at)} " if at is not None and at < len(inspection.rows) else ""
        rows.append(f"<li>{place}<code>{escaped(problem.where)}</code>{escaped(say.reason(problem.text))}</li>")
    body = f'<ul class="list">{"".join(rows)}</ul>' + _more(say, len(inspection.problems) - len(kept))
    return _card(say("problems"), body, escaped(say("checked_for", fmt=inspection.checked_for)))


def _warnings(inspection: Inspection, say: Words, top: int) -> str:
    if not inspection.warnings:
        return ""
    kept = inspection.warnings[: top or None]
    body = "".join(f"<li>{escaped(warning)}</li>" for warning in kept)
    return _card(say("warnings"), f'<ul class="list">{body}</ul>' + _more(say, len(inspection.warnings) - len(kept)))


def _roles(inspection: Inspection, say: Words) -> str:
    rows = [(role.value, say.name(role.value), tokens) for role, tokens, _ in inspection.map.by_role]
    return _card(say("by_role"), _share_table(rows, inspection, say))


def _kinds(inspection: Inspection, say: Words) -> str:
    rows = [(kind, say.name(kind), tokens) for kind, tokens in inspection.map.by_kind]
    return _card(say("by_kind"), _share_table(rows, inspection, say))


def _share_table(rows: list[tuple[str, str, int]], inspection: Inspection, say: Words) -> str:
    total = inspection.map.total
    if inspection.map.schemas:
        rows = [*rows, (SCHEMAS, say(SCHEMAS), inspection.map.schemas)]
    rows = sorted(rows, key=lambda row: -row[2])
    most = rows[0][2] if rows else 0
    head = (("name", ""), ("meter", ""), ("", say("column_tokens")), ("", say("share")))
    return _table(
        head,
        (
            (escaped(name), meter(tokens, most, NEAREST.get(key, key)), amount(tokens), percent(tokens, total))
            for key, name, tokens in rows
        ),
    )


def _tools(inspection: Inspection, say: Words, top: int) -> str:
    tools = inspection.map.by_tool
    if not tools:
        return ""
    kept = tools[: top or None]
    head = (("name", ""), ("meter", ""), ("", say("column_tokens")), ("", say("column_calls")))
    drawn = _table(
        head,
        (
            (
                escaped(say.name(tool.name)),
                _two_meters(tool.call_tokens, tool.result_tokens, tools[0].tokens),
                amount(tool.tokens),
                amount(tool.calls),
            )
            for tool in kept
        ),
    )
    keys = f"{swatch('calls')} {escaped(say('calls'))} &nbsp; {swatch('results')} {escaped(say('results'))}"
    rest = tools[len(kept) :]
    return _card(say("by_tool"), drawn + _more(say, len(rest), sum(tool.tokens for tool in rest)), keys)


def _two_meters(first: int, second: int, whole: int) -> str:
    return f'<span class="pair">{meter(first, whole, "calls")}{meter(second, whole, "results")}</span>'


def _heaviest(inspection: Inspection, say: Words, top: int) -> str:
    heaviest = inspection.map.heaviest[: top or None]
    rows = [inspection.rows[weight.index] for weight in heaviest]
    head = (("", ""), ("what", say("column_what")), ("meter small", ""), ("", say("column_tokens")), ("", say("share")))
    most = rows[0].tokens if rows else 0
    drawn = _table(
        head,
        (
            (
                linked(row.index),
                _what(row, say),
                meter(row.tokens, most, row.category),
                amount(row.tokens),
                percent(row.tokens, inspection.map.total),
            )
            for row in rows
        ),
    )
    return _card(say("heaviest"), drawn)


def _protected(inspection: Inspection, say: Words, top: int) -> str:
    rows = [row for row in inspection.rows if row.protected]
    if not rows:
        return ""
    head = (("", ""), ("what", say("column_what")), ("left", say("column_why")), ("", say("column_tokens")))
    kept = rows[: top or None]
    drawn = _table(
        head,
        ((linked(row.index), _what(row, say), escaped(say.name(row.protected)), amount(row.tokens)) for row in kept),
    )
    rest = rows[len(kept) :]
    more = _more(say, len(rest), sum(row.tokens for row in rest))
    return _card(say("protected"), drawn + more, escaped(say("protected_hint")))


def _repeats(inspection: Inspection, say: Words, top: int) -> str:
    repeats = inspection.map.repeats
    if not repeats:
        return _card(say("repeats"), f'<p class="fine">{escaped(say("no_repeats"))}</p>')
    head = (
        ("what", say("column_what")),
        ("left", say("column_where")),
        ("", say("column_copies")),
        ("", say("column_wasted")),
    )
    kept = repeats[: top or None]
    drawn = _table(
        head,
        (
            (
                f'<span class="clamp">{escaped(repeat.title)}</span>',
                " ".join(linked(at) for at in repeat.messages[:PLACES_NAMED])
                + (" …" if len(repeat.messages) > PLACES_NAMED else ""),
                amount(len(repeat.messages)),
                amount(repeat.wasted),
            )
            for repeat in kept
        ),
    )
    rest = repeats[len(kept) :]
    more = _more(say, len(rest), sum(repeat.wasted for repeat in rest))
    return _card(say("repeats"), drawn + more, escaped(say.many("wasted", sum(repeat.wasted for repeat in repeats))))


def _what(row: Row, say: Words) -> str:
    title = row.title or say("pictures_only")
    return f'<span class="clamp" title="{escaped(say.name(row.label))}">{swatch(row.category)}{escaped(title)}</span>'


def _more(say: Words, left: int, tokens: int | None = None) -> str:
    if left <= 0:
        return ""
    if tokens is None:
        return f'<p class="hint more">{escaped(say("more_rows", n=amount(left)))}</p>'
    return f'<p class="hint more">{escaped(say("more_tokens", n=amount(left), tokens=amount(tokens)))}</p>'


# --- boxes and tables --------------------------------------------------------------------------


def _card(title: str, body: str, hint: str = "") -> str:
    """Return a box with a title; `body` and `hint` are already markup."""
    beside = f'<span class="hint">{hint}</span>' if hint else ""
    return f'<section class="card"><header><h2>{escaped(title)}</h2>{beside}</header>{body}</section>'


def _table(head: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; `head` has (class, title) of each column, cells are already markup."""
    titles = "".join(f'<th scope="col"{_class(css)}>{escaped(title)}</th>' for css, title in head)
    body = "".join(
        "<tr>" + "".join(f"<td{_class(css)}>{cell}</td>" for (css, _), cell in zip(head, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="table-scroll"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""
