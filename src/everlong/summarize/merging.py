"""Two summaries of one conversation as one: the newer after the older, nothing twice, within a limit.

What is done leaves what is next. Where room is short the oldest go first, and what is finished goes before what holds.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

from everlong.relevance import terms_of, words_of
from everlong.summarize.parts import CONTEXT_LIMIT, FALLBACK_LIMIT, LISTS
from everlong.summarize.sentences import clipped, plain_key, sentences_of
from everlong.summarize.summary import Facts, Style, Summary
from everlong.tokens import Counter

__all__ = ["merged"]

SAME_TASK = 0.7  # share of the terms of a task that a finished one has to name
ITEM_FRAME = 3  # tokens around an item: dash, line end
HEADINGS = 160  # tokens of all headings together, in either language
#: A summary of several merged ones never has more items than this in one list, whatever the limit.
MOST_ITEMS = 60
MOST_FACTS = 60

#: What goes first where room is short.
LEAST_FIRST = (
    "facts.files_read",
    "facts.numbers",
    "facts.identifiers",
    "done",
    "file_changes",
    "facts.failures",
    "facts.files_changed",
    "open_questions",
    "decisions",
    "facts.requests",
    "constraints",
    "facts.open_tasks",
    "next",
)
#: The newest items of each list that go only when all older ones of every list have gone.
SPARED = 2


def merged(older: Summary, newer: Summary, *, limit: int, counter: Counter) -> Summary:
    """Both as one of about `limit` tokens at most; the newest of everything is kept longest.

    Example: older next ("write tests",), newer done ("write tests",) -> next ()
    """
    lists = {name: _joined(getattr(older, name), getattr(newer, name)) for name in LISTS}
    lists["next"] = tuple(task for task in lists["next"] if not _finished(task, newer.done))
    facts = Facts(
        **{
            one.name: _joined(getattr(older.facts, one.name), getattr(newer.facts, one.name))[-MOST_FACTS:]
            for one in fields(Facts)
        }
    )
    style = _style(older, newer)
    whole = replace(newer, style=style, context=_context(older, newer, style), facts=facts)
    return _bounded(replace(whole, **lists), limit, counter)  # type: ignore[arg-type]


def _style(older: Summary, newer: Summary) -> Style:
    """Prose that came where sections were asked for does not make the sections before it prose."""
    return older.style if newer.style == "free" else newer.style


def _joined(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Older, then newer; what is said again counts where it is said last."""
    last: dict[str, str] = {}
    for item in (*older, *newer):
        key = plain_key(item) or item
        last.pop(key, None)
        last[key] = item
    return tuple(last.values())[-MOST_ITEMS:]


def _context(older: Summary, newer: Summary, style: Style) -> str:
    """The newer context, with those older sentences in front that it does not repeat, as far as there is room."""
    most = CONTEXT_LIMIT if style in ("structured", "rolling") and newer.style != "free" else FALLBACK_LIMIT
    said = {plain_key(sentence) for sentence in sentences_of(newer.context)}
    kept = newer.context
    for sentence in reversed(sentences_of(older.context)):
        longer = f"{sentence} {kept}".strip()
        if plain_key(sentence) in said:
            continue
        if len(longer) > most:
            break
        kept = longer
    return clipped(kept, most)


def _finished(task: str, done: Sequence[str]) -> bool:
    wanted = _terms(task)
    return bool(wanted) and any(len(wanted & _terms(item)) >= SAME_TASK * len(wanted) for item in done)


def _terms(text: str) -> set[str]:
    return {term for word in words_of(text) for term, _ in terms_of(word)}


def _bounded(summary: Summary, limit: int, counter: Counter) -> Summary:
    """Items leave, least needed and oldest first, until what is left fits."""
    lists: dict[str, list[str]] = {}
    for name in LEAST_FIRST:
        owner, _, field = name.rpartition(".")
        lists[name] = list(getattr(summary.facts if owner else summary, field))
    costs = {name: [counter.text(item) + ITEM_FRAME for item in items] for name, items in lists.items()}
    room = max(0, limit - min(HEADINGS, limit // 4))
    context = summary.context
    if counter.text(context) > room // 2:
        context = clipped(context, max(0, min(len(context), room)))  # a token is about a character at worst
    total = counter.text(context) + sum(map(sum, costs.values()))
    for spared in (SPARED, 0):
        for name in LEAST_FIRST:
            while total > room and len(lists[name]) > spared:
                lists[name].pop(0)
                total -= costs[name].pop(0)
    plain = {name: tuple(items) for name, items in lists.items() if "." not in name}
    facts = {name.partition(".")[2]: tuple(items) for name, items in lists.items() if "." in name}
    return replace(summary, context=context, facts=Facts(**facts), **plain)  # type: ignore[arg-type]
