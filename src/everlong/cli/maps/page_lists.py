"""The tables of the page: roles, kinds, tools, heaviest, protected, repeated and rejected messages, edits."""

from collections.abc import Iterable, Sequence

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import escaped, figure, linked, meter, swatch
from everlong.cli.maps.plan import Plan, causes_of
from everlong.cli.maps.rows import NEAREST, SCHEMAS, Row, State
from everlong.cli.terminal.tables import percent
from everlong.cli.words.wording import Words
from everlong.core import Action

__all__ = ["card", "edit_tables", "lists"]

PLACES_NAMED = 4
MOST_EDITS = 1_000  # listed one by one
STATE_OF = {
    Action.SHORTEN: State.TRIMMED.value,
    Action.DROP: State.GOES.value,
    Action.INSERT: State.OURS.value,
    Action.REPAIR: State.TRIMMED.value,
}


def card(title: str, body: str, hint: str = "") -> str:
    """Return a box with a title; `body` and `hint` are markup already."""
    beside = f'<span class="hint">{hint}</span>' if hint else ""
    return f'<section class="card"><header><h2>{escaped(title)}</h2>{beside}</header>{body}</section>'


def table(head: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; `head` has (class, title) of each column, cells are markup already."""
    titles = "".join(f'<th scope="col"{_class(css)}>{escaped(title)}</th>' for css, title in head)
    body = "".join(
        "<tr>" + "".join(f"<td{_class(css)}>{cell}</td>" for (css, _), cell in zip(head, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="table-scroll"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def lists(inspection: Inspection, say: Words, top: int) -> str:
    """Return all lists in the order of the page."""
    shares = (
        f'<div class="columns">{_roles(inspection, say)}{_kinds(inspection, say)}{_tools(inspection, say, top)}</div>'
    )
    beside = _protected(inspection, say, top) + _repeats(inspection, say, top)
    heavy = f'<div class="columns wide">{_heaviest(inspection, say, top)}<div class="stack">{beside}</div></div>'
    return _problems(inspection, say, top) + _warnings(inspection, say, top) + shares + heavy


def edit_tables(plan: Plan, say: Words) -> str:
    """Return what a budget changed: by cause, and one by one with the reference that brings the original back."""
    sizes = (("", say("column_before")), ("", say("column_after")))
    causes = table(
        (("left", ""), ("what", say("column_why")), ("", say("column_edits")), *sizes),
        (
            (
                _action(cause.action, say),
                escaped(say.step(cause.step, cause.action)),
                *map(figure, (cause.edits, cause.before, cause.after)),
            )
            for cause in causes_of(plan.edits)
        ),
    )
    kept = plan.edits[:MOST_EDITS]
    edits = table(
        (("", ""), ("left", ""), ("what", say("column_why")), *sizes, ("left", say("column_ref"))),
        (
            (
                linked(edit.at),
                _action(edit.action, say),
                escaped(say.reason(edit.reason)),
                figure(edit.before),
                figure(edit.after),
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


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""


def _roles(inspection: Inspection, say: Words) -> str:
    rows = [(role.value, say.name(role.value), tokens) for role, tokens, _ in inspection.map.by_role]
    return card(say("by_role"), _share_table(rows, inspection, say))


def _kinds(inspection: Inspection, say: Words) -> str:
    rows = [(kind, say.name(kind), tokens) for kind, tokens in inspection.map.by_kind]
    return card(say("by_kind"), _share_table(rows, inspection, say))


def _share_table(rows: list[tuple[str, str, int]], inspection: Inspection, say: Words) -> str:
    total = inspection.map.total
    if inspection.map.schemas:
        rows = [*rows, (SCHEMAS, say(SCHEMAS), inspection.map.schemas)]
    rows = sorted(rows, key=lambda row: -row[2])
    most = rows[0][2] if rows else 0
    head = (("name", ""), ("meter", ""), ("", say("column_tokens")), ("", say("share")))
    return table(
        head,
        (
            (escaped(name), meter(tokens, most, NEAREST.get(key, key)), figure(tokens), percent(tokens, total))
            for key, name, tokens in rows
        ),
    )


def _tools(inspection: Inspection, say: Words, top: int) -> str:
    tools = inspection.map.by_tool
    if not tools:
        return ""
    kept = tools[: top or None]
    head = (("name", ""), ("meter", ""), ("", say("column_tokens")), ("", say("column_calls")))
    drawn = table(
        head,
        (
            (
                escaped(say.name(tool.name)),
                _two_meters(tool.call_tokens, tool.result_tokens, tools[0].tokens),
                figure(tool.tokens),
                figure(tool.calls),
            )
            for tool in kept
        ),
    )
    keys = f"{swatch('calls')} {escaped(say('calls'))} &nbsp; {swatch('results')} {escaped(say('results'))}"
    rest = tools[len(kept) :]
    return card(say("by_tool"), drawn + _more(say, len(rest), sum(tool.tokens for tool in rest)), keys)


def _two_meters(first: int, second: int, whole: int) -> str:
    return f'<span class="pair">{meter(first, whole, "calls")}{meter(second, whole, "results")}</span>'


def _heaviest(inspection: Inspection, say: Words, top: int) -> str:
    heaviest = inspection.map.heaviest[: top or None]
    rows = [inspection.rows[weight.index] for weight in heaviest]
    head = (("", ""), ("what", say("column_what")), ("meter small", ""), ("", say("column_tokens")), ("", say("share")))
    most = rows[0].tokens if rows else 0
    drawn = table(
        head,
        (
            (
                linked(row.index),
                _what(row, say),
                meter(row.tokens, most, row.category),
                figure(row.tokens),
                percent(row.tokens, inspection.map.total),
            )
            for row in rows
        ),
    )
    return card(say("heaviest"), drawn)


def _protected(inspection: Inspection, say: Words, top: int) -> str:
    rows = [row for row in inspection.rows if row.protected]
    if not rows:
        return ""
    head = (("", ""), ("what", say("column_what")), ("left", say("column_why")), ("", say("column_tokens")))
    kept = rows[: top or None]
    drawn = table(
        head,
        ((linked(row.index), _what(row, say), escaped(say.name(row.protected)), figure(row.tokens)) for row in kept),
    )
    rest = rows[len(kept) :]
    more = _more(say, len(rest), sum(row.tokens for row in rest))
    return card(say("protected"), drawn + more, escaped(say("protected_hint")))


def _repeats(inspection: Inspection, say: Words, top: int) -> str:
    repeats = inspection.map.repeats
    if not repeats:
        return card(say("repeats"), f'<p class="fine">{escaped(say("no_repeats"))}</p>')
    head = (
        ("what", say("column_what")),
        ("left", say("column_where")),
        ("", say("column_copies")),
        ("", say("column_wasted")),
    )
    kept = repeats[: top or None]
    drawn = table(
        head,
        (
            (
                f'<span class="clamp">{escaped(repeat.title)}</span>',
                " ".join(linked(at) for at in repeat.messages[:PLACES_NAMED])
                + (" …" if len(repeat.messages) > PLACES_NAMED else ""),
                figure(len(repeat.messages)),
                figure(repeat.wasted),
            )
            for repeat in kept
        ),
    )
    rest = repeats[len(kept) :]
    more = _more(say, len(rest), sum(repeat.wasted for repeat in rest))
    return card(say("repeats"), drawn + more, escaped(say.many("wasted", sum(repeat.wasted for repeat in repeats))))


def _problems(inspection: Inspection, say: Words, top: int) -> str:
    if not inspection.problems:
        return ""
    kept = inspection.problems[: top or None]
    rows = []
    for problem, at in zip(kept, inspection.problem_places, strict=False):
        place = f"{linked(at)} " if at is not None and at < len(inspection.rows) else ""
        rows.append(f"<li>{place}<code>{escaped(problem.where)}</code>{escaped(say.reason(problem.text))}</li>")
    body = f'<ul class="list">{"".join(rows)}</ul>' + _more(say, len(inspection.problems) - len(kept))
    return card(say("problems"), body, escaped(say("checked_for", fmt=inspection.checked_for)))


def _warnings(inspection: Inspection, say: Words, top: int) -> str:
    if not inspection.warnings:
        return ""
    kept = inspection.warnings[: top or None]
    body = "".join(f"<li>{escaped(warning)}</li>" for warning in kept)
    return card(say("warnings"), f'<ul class="list">{body}</ul>' + _more(say, len(inspection.warnings) - len(kept)))


def _what(row: Row, say: Words) -> str:
    title = row.title or say("pictures_only")
    return f'<span class="clamp" title="{escaped(say.name(row.label))}">{swatch(row.category)}{escaped(title)}</span>'


def _more(say: Words, left: int, tokens: int | None = None) -> str:
    if left <= 0:
        return ""
    if tokens is None:
        return f'<p class="hint more">{escaped(say("more_rows", n=figure(left)))}</p>'
    return f'<p class="hint more">{escaped(say("more_tokens", n=figure(left), tokens=figure(tokens)))}</p>'
