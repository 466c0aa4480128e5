"""Every round and message of the page, folded; opening one shows the beginning of its text.

Folded content costs a browser next to nothing, even with thousands of messages. Texts are cut so that the whole page
is small enough to be mailed.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import escaped, meter, preview, ribbon, swatch
from everlong.cli.maps.rows import SCHEMAS, Row, State, segments_of
from everlong.cli.terminal.tables import amount, percent
from everlong.cli.words.wording import Words
from everlong.core import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from everlong.engine import RoundWeight

__all__ = ["round_list"]

TEXT_BYTES = 700_000  # of all titles and previews together
MOST_BYTES, LEAST_BYTES = 4_000, 160  # of one message's preview
OURS_BYTES = 24_000  # of an added message: there are few, and people look at them


def round_list(inspection: Inspection, say: Words) -> str:
    """Return all rounds in order of time, after the messages before the first one."""
    return "".join(_Rounds(inspection, say).drawn())


class _Rounds:
    def __init__(self, inspection: Inspection, say: Words) -> None:
        self.inspection = inspection
        self.say = say
        texts = len(inspection.rows) + sum(row.sent is not None for row in inspection.rows)
        titles = [row.title for row in inspection.rows] + [weight.title for weight in inspection.map.rounds]
        left = TEXT_BYTES - sum(len(escaped(title).encode()) for title in titles)
        self.size = min(MOST_BYTES, max(LEAST_BYTES, left // max(1, texts)))
        self.heaviest = max((weight.tokens for weight in inspection.map.rounds), default=0)
        self.largest = max((row.tokens for row in inspection.rows), default=0)
        self.copies = {at for repeat in inspection.map.repeats for at in repeat.messages}
        self.faulty = set(inspection.problem_places)
        self.added: dict[int, list[Row]] = {}
        for row in inspection.plan.added if inspection.plan else ():
            self.added.setdefault(min(row.index, len(inspection.rows) - 1), []).append(row)

    def drawn(self) -> Iterator[str]:
        weights, say = self.inspection.map, self.say
        first = weights.rounds[0].start if weights.rounds else len(weights.messages)
        if first or weights.schemas:
            tokens = weights.schemas + sum(weight.tokens for weight in weights.messages[:first])
            yield self._round("", RoundWeight(0, first, tokens, say("before_rounds")), weights.schemas)
        for number, weight in enumerate(weights.rounds, start=1):
            yield self._round(str(number), weight)

    def _round(self, number: str, weight: RoundWeight, schemas: int = 0) -> str:
        rows = self.inspection.rows[weight.start : weight.stop]
        front = [(SCHEMAS, schemas)] if schemas else []
        bar = ribbon([*front, *segments_of(rows)], weight.tokens / self.heaviest if self.heaviest else 1)
        past = " past" if rows and not any(self.inspection.is_sent(row.index) for row in rows) else ""
        body = [self._schemas(schemas)] if schemas else []
        for row in rows:
            body += [self._message(ours) for ours in self.added.get(row.index, ())]
            if row.index in self.inspection.boundaries:
                body.append(f'<p class="cut-here">{escaped(self.say("boundary_here"))}</p>')
            body.append(self._message(row))
        return (
            f'<details class="round{past}" id="r{number or 0}"><summary><span class="no">{number}</span>'
            f'<span class="title line">{escaped(weight.title or self.say("nothing_asked"))}</span>{bar}'
            f'<span class="num">{amount(weight.tokens)}</span>'
            f'<span class="num pale">{percent(weight.tokens, self.inspection.map.total)}</span></summary>'
            f'<div class="inside">{"".join(body)}</div></details>'
        )

    def _schemas(self, tokens: int) -> str:
        line = self._line("", SCHEMAS, "", self.say(SCHEMAS))
        return (
            f'<details class="m" data-k="{SCHEMAS}"><summary>{line}<span class="tags"></span>'
            f'<span class="bar">{meter(tokens, self.largest, SCHEMAS)}</span><span class="num">{amount(tokens)}</span>'
            "</summary></details>"
        )

    def _message(self, row: Row) -> str:
        ours, say = row.state is State.OURS, self.say
        classes = ["m"]
        if row.state is not State.UNDECIDED:
            classes.append(f"s-{row.state.value}")
        if not ours and not self.inspection.is_sent(row.index):
            classes.append("past")
        keys = dict.fromkeys([*(segment[0] for segment in row.segments), row.state.value])
        name = "" if ours else f' id="m{row.index}" data-t="{row.tokens}"'
        tokens = amount(row.tokens)
        if row.state is State.TRIMMED:
            tokens += f"<small> → {amount(row.after or 0)}</small>"
        line = self._line("+" if ours else f"#{row.index}", row.category, say.name(row.label), row.title)
        return (
            f'<details class="{" ".join(classes)}"{name} data-k="{" ".join(keys)}"><summary>{line}'
            f'<span class="tags">{self._tags(row)}</span>'
            f'<span class="bar">{meter(row.tokens, self.largest, row.category)}</span><span class="num">{tokens}</span>'
            f'</summary><div class="said">{self._said(row)}</div></details>'
        )

    def _line(self, number: str, category: str, label: str, title: str) -> str:
        kind = f'{swatch(category)}<span class="name">{escaped(label)}</span>'
        return (
            f'<span class="no">{number}</span><span class="kind">{kind}</span>'
            f'<span class="line">{escaped(title or self.say("pictures_only"))}</span>'
        )

    def _tags(self, row: Row) -> str:
        say, tags = self.say, []
        if row.state is State.OURS:
            return f'<span class="tag ours" title="{escaped(self._why(row))}">{escaped(say("ours"))}</span>'
        if row.protected:
            tags.append(("", say.name(row.protected), say("protected")))
        if row.index in self.copies:
            tags.append((" warn", say("repeats"), "×2+"))
        if row.index in self.faulty:
            tags.append((" bad", say("problems"), "!"))
        if row.state in (State.TRIMMED, State.GOES):
            tags.append((f" {row.state.value}", self._why(row), say(row.state.value)))
        return "".join(
            f'<span class="tag{css}" title="{escaped(hint)}">{escaped(text)}</span>' for css, hint, text in tags
        )

    def _why(self, row: Row) -> str:
        return "; ".join(map(self.say.reason, row.notes))

    def _said(self, row: Row) -> str:
        """Return why the message has its state, what would be sent instead, and its text."""
        say = self.say
        why = "".join(f"<p>{escaped(say.reason(note))}</p>" for note in row.notes)
        if row.state is State.OURS:
            return why + (self._blocks(row.sent, OURS_BYTES) if row.sent else "")
        now = self._blocks(self.inspection.history[row.index], self.size)
        if row.sent is None:
            return why + now
        sent = f"<p>{escaped(say('sent_instead'))}</p>{self._blocks(row.sent, self.size)}"
        return f"{why}{sent}<p>{escaped(say('column_before'))}</p>{now}"

    def _blocks(self, message: Message, size: int) -> str:
        """Return the beginning of each part, in about `size` bytes together."""
        drawn = []
        for heading, text, prose in _texts(message.parts, self.say):
            body, left = preview(text, size)
            size = max(LEAST_BYTES // 4, size - len(body.encode()))
            label = f"<p>{escaped(heading)}</p>" if heading else ""
            kind = ' class="prose"' if prose else ""
            more = f"<p>{escaped(self.say('more_characters', n=amount(left)))}</p>" if left else ""
            drawn.append(f'{label}<pre{kind} dir="auto">{body}</pre>{more}')
        return "".join(drawn)


def _texts(parts: Sequence[Part], say: Words) -> Iterator[tuple[str, str, bool]]:
    """Yield (heading, text, whether it is prose) of each part; what is not text is named."""
    for part in parts:
        match part:
            case Text(text):
                yield "", text, True
            case Reasoning(text):
                yield say("reasoning"), text or say("sealed"), True
            case ToolCall(name=name, arguments=arguments):
                yield f"{say('calls')}: {name}", arguments, False
            case ToolResult(content=content):
                yield from ((heading, text, False) for heading, text, _ in _texts(content, say))
            case Image(media_type=media_type, url=url):
                yield "", say("image", what=media_type or url[:200]), True
            case Opaque(kind=kind):
                yield "", say("opaque", what=kind), True
            case _:
                assert_never(part)
