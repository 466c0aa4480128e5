"""The page of the events: what happens to a thread, with the fields that each event fills, and what a turn yields."""

import ast
from collections.abc import Iterator

from everlong.core import OUTCOMES, EventKind
from reference_pages.catalogue import Catalogue
from reference_pages.markdown import code, generated, line_of, prose, table, text_of
from reference_pages.source import SOURCE, Definition, find

__all__ = ["PAGE", "events_page"]

PAGE = "events.md"
INTRODUCTION = """\
Everything that happens to a thread is an event: each turn, compaction, summary, overflow and cost. The store keeps
events beside the messages. `store.events(thread)` reads them, observers of the engine get each one as it happens, and
`everlong sessions events ID` lists them. [`logs_events`](api/engine.md#logs_events) writes them to a log,
[`traces_events`](api/engine.md#traces_events) makes OpenTelemetry spans of them.

Events hold names, figures and reasons, never the text of a conversation. Only a reason may quote a provider's error.

Work that takes time is a start and exactly one outcome. The outcome names its start as `parent`.
"""


def events_page(entries: Catalogue) -> str:
    """Return the page of all events."""
    event, kinds = _class("everlong.core", "Event"), _class("everlong.core", "EventKind")
    lines = [generated("the events of the program"), "# Events", "", *INTRODUCTION.split("\n")]
    lines += ["## Thread events", "", *_kind_table(entries, kinds)]
    lines += ["## Fields of an event", "", *prose(event.doc, entries.link(PAGE, event.module)), *_field_table(event)]
    lines += _replies(entries)
    return "\n".join(lines).rstrip() + "\n"


def _class(package: str, name: str) -> Definition:
    found = find(package, name)
    assert found is not None
    assert isinstance(found.node, ast.ClassDef)
    return found


def _kind_table(entries: Catalogue, kinds: Definition) -> list[str]:
    assert isinstance(kinds.node, ast.ClassDef)
    filled, outcomes = _filled_fields(), _outcomes()
    link = entries.link(PAGE, kinds.module)
    rows = []
    for statement in kinds.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            member = statement.targets[0].id
            said = line_of(kinds.module.comment(statement), link)
            assert said, f"EventKind.{member} has no comment that says when it happens"
            ends = ", ".join(code(value) for value in outcomes.get(member, ()))
            fields = ", ".join(code(name) for name in filled.get(member, ()))
            rows.append((code(ast.literal_eval(statement.value)), said, ends, fields))
    return table(("event", "when", "ends in", "fields"), rows)


def _filled_fields() -> dict[str, list[str]]:
    """Return the fields that the engine fills, by the member of EventKind: those of all calls that note one."""
    found: dict[str, set[str]] = {}
    for path in sorted((SOURCE / "engine").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "note" or not node.args:
                continue
            for kind in ast.walk(node.args[0]):
                if not isinstance(kind, ast.Attribute):
                    continue
                members = [kind.attr] if ast.unparse(kind.value) == "EventKind" else []
                if ast.unparse(kind) == "outcome.kind":  # that of a summary, whichever it is
                    members = [end.name for end in OUTCOMES[EventKind.SUMMARY_STARTED]]
                for member in members:
                    found.setdefault(member, set()).update(word.arg for word in node.keywords if word.arg)
    order = [name for name, _, _ in _fields(_class("everlong.core", "Event"))]
    return {kind: sorted(names, key=order.index) for kind, names in found.items()}


def _outcomes() -> dict[str, tuple[str, ...]]:
    return {start.name: tuple(end.value for end in ends) for start, ends in OUTCOMES.items()}


def _fields(event: Definition) -> Iterator[tuple[str, str, str]]:
    assert isinstance(event.node, ast.ClassDef)
    for statement in event.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, event.module.annotation(statement.annotation), event.module.comment(statement)


def _field_table(event: Definition) -> list[str]:
    return table(("field", "type", ""), [(code(name), code(kind), said) for name, kind, said in _fields(event)])


def _replies(entries: Catalogue) -> list[str]:
    """What a turn yields while it runs, of the engine and of the agent."""
    lines = []
    for heading, said, package, alias in (
        (
            "What a turn yields",
            "`engine.stream` and `converse` yield these values; the last one is `Finished` or `Failed`.",
            "everlong.engine",
            "Reply",
        ),
        ("What the agent yields", "`agent.turn` yields the values above, and these:", "everlong.agent", "AgentEvent"),
    ):
        union = find(package, alias)
        assert union is not None
        assert isinstance(union.node, ast.AnnAssign)
        assert union.node.value is not None
        names = [each.id for each in ast.walk(union.node.value) if isinstance(each, ast.Name) and each.id != "Reply"]
        rows = []
        for name in names:
            each = find(union.module.name, name)
            assert each is not None
            rows.append((f"[{code(name)}]({entries.address(PAGE, each)})", line_of(text_of(each.doc))))
        lines += [f"## {heading}", "", said, "", *table(("value", ""), sorted(rows))]
    return lines
