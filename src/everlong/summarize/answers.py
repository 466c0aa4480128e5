"""Parse a model's answer into a summary, or say why it is not one. Never raises.

Answers come as JSON, as JSON in a fence, as headings with lists, or as prose. The first three fill the parts of the
style; prose becomes a summary in free text. An answer that is empty, refused, cut off or not a summary is rejected.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from everlong.core import Json, JsonText, Message, Reasoning
from everlong.summarize.audit.language import spoken
from everlong.summarize.audit.signs import no_summary
from everlong.summarize.parts import (
    CONTEXT_LIMIT,
    FREE_LIMIT,
    LISTS,
    WORD_LIMIT,
    Field,
    Style,
    field_named,
    prose_limit,
)
from everlong.summarize.prompts import asked_lines
from everlong.summarize.summary import Facts, Summary, encode_summary
from everlong.summarize.text import clipped, counted_words, one_line, plain_key, within_words

__all__ = ["CutOff", "foreign_account", "parsed", "sections_of"]

LONGEST_ANSWER = 100_000  # characters
LONGEST_ITEM = 600  # characters
MOST_ITEMS = 40  # in one part
LONGEST_NOTHING = 80  # characters
FAR_TOO_LONG = 6  # times the limit for prose
REPEATED_LINES = 8  # if more lines than this are mostly the same, the model is stuck in a loop
ECHOED_SHARE = 0.5  # of the lines come from the prompt

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning|analysis|scratchpad)>", re.IGNORECASE)
_LATE_THOUGHT = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_WRAPPER = re.compile(r"<(summary|answer|output|result|response)>", re.IGNORECASE)
_NOTHING = re.compile(
    r"\W*(?:none|n/?a|nothing|null|not applicable|unknown|无|没有|暂无|不适用"
    r"|no (?:\w+ )?(?:decisions?|constraints?|questions?|changes?|files?|tasks?|steps?)(?: \w+)?)?\W*",
    re.IGNORECASE,
)

LARGEST = 200_000  # characters; no summary is longer
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n?(.*?)\n?```", re.DOTALL | re.MULTILINE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_KEY = re.compile(r"[\"'“]([^\"'”\n:：]{2,60})[\"'”]\s*[:：]")
_ITEM = re.compile(r"[\"“]((?:[^\"\\\n]|\\.)*)[\"”]")
_SINGLE = re.compile(r"'((?:[^'\\\n]|\\.)*)'(?=\s*[,\]}])")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.{1,80})$")
_LABEL = re.compile(
    r"^\s*(?:[-*+]\s+|\d+[.)、]\s*)?(?:\*\*|__)?([^:：*\n]{1,40}?)(?:\*\*|__)?\s*[:：]\s*(?:\*\*|__)?\s*(.*)$"
)
_BOLD = re.compile(r"^\s*(?:\d+[.)、]\s*)?(?:\*\*|__|【)([^*_\n】]{1,60})(?:\*\*|__|】)\s*$")
_BULLET = re.compile(r"^\s*(?:[-*+•·–]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)、]\s*)")


@dataclass(frozen=True, slots=True)
class CutOff:
    """The answer was cut off in the middle."""


def parsed(answer: Message, style: Style, language: str) -> Summary | str:
    """Return the summary in an answer, or the reason why there is none.

    Example: the answer '{"decisions": ["use SQLite"]}' -> Summary(decisions=("use SQLite",))
    """
    if answer.calls:
        return "a tool call instead of a summary"
    if len(answer.text) > LONGEST_ANSWER:
        return f"{len(answer.text):,} characters long, far too long for a summary"
    text = _without_wrapping(answer.text)
    if not text:
        thought = any(isinstance(part, Reasoning) for part in answer.parts) or answer.text.strip()
        return "only reasoning, no summary" if thought else "an empty answer"
    if reason := no_summary(text) or _repetition(text, style, language):
        return reason
    if style == "free":
        return _prose(text, style, language, prose_limit(style))
    sections = sections_of(text)
    if isinstance(sections, CutOff):
        return "cut off before its end"
    if sections is None:
        return _prose(text, style, language, prose_limit(style))
    return _from_sections(sections, style, language)


def _without_wrapping(text: str) -> str:
    """Return the answer without reasoning and without tags around the whole."""
    bare = _without_thoughts(text).strip()
    while wrapped := _WRAPPER.match(bare):
        closing = f"</{wrapped[1]}>"
        bare = bare[wrapped.end() :].removesuffix(closing).strip()
    return bare if any(character.isalnum() for character in bare) else ""


def _without_thoughts(text: str) -> str:
    """Return the text without reasoning blocks, which end the text if unclosed. Some models omit the opening tag."""
    texts, at = [], 0
    while opening := _THOUGHT.search(text, at):
        texts.append(text[at : opening.start()])
        closing = re.compile(f"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            return "".join(texts)
        at = closing.end()
    rest = text[at:]
    late = list(_LATE_THOUGHT.finditer(rest))
    return "".join(texts) + (rest[late[-1].end() :] if late else rest)


def _repetition(text: str, style: Style, language: str) -> str:
    """Return why an answer is only a repetition of itself or the prompt; "" if it is not."""
    lines = [key for key in map(plain_key, text.splitlines()) if key]
    if len(lines) > REPEATED_LINES and len(set(lines)) <= len(lines) // 2:
        return "the same lines again and again"
    words = text.split()
    if len(words) > 200 and len(set(words)) < len(words) // 20:
        return "the same words again and again"
    prompt = asked_lines(style, language)
    if sum(line in prompt for line in lines) > ECHOED_SHARE * len(lines):
        return "the prompt repeated"
    return ""


def _prose(text: str, style: Style, language: str, limit: int) -> Summary | str:
    sections = sections_of(text)
    if isinstance(sections, CutOff):
        return "cut off before its end"
    if style == "free" and sections:
        text = " ".join(" ".join(items) for name, items in sections.items() if name != "requests") or text
    bare = "\n".join(line for line in map(one_line, text.splitlines()) if line)
    if len(bare) > FAR_TOO_LONG * limit:
        return f"{len(bare)} characters where at most {limit} were allowed"
    if _says_nothing(bare):
        return "an empty summary"
    claimed = tuple(sections.get("requests", ())) if sections else ()
    return Summary(style="free", language=language, context=clipped(bare, limit), facts=Facts(requests=claimed))


def _from_sections(sections: dict[Field, list[str]], style: Style, language: str) -> Summary | str:
    context = " ".join(sections.get("context", ()))
    context = "" if _says_nothing(context) else context
    lists = {name: _items(sections.get(name, [])) for name in LISTS}
    if not context and not any(lists.values()):
        return "an empty summary"
    if reason := no_summary(context):
        return reason
    limit = CONTEXT_LIMIT if style in ("structured", "rolling") else FREE_LIMIT
    summary = Summary(
        style=style,
        language=language,
        context=clipped(context, limit),
        facts=Facts(requests=_items(sections.get("requests", []))),
    )
    summary = replace(summary, **lists)  # type: ignore[arg-type]
    return _in_few_words(summary) if style == "buffer" else summary


def _says_nothing(text: str) -> bool:
    return len(text) <= LONGEST_NOTHING and _NOTHING.fullmatch(text) is not None


def _items(texts: list[str]) -> tuple[str, ...]:
    """Return each item once, on one line and clipped. If there are too many, the last ones stay."""
    items: dict[str, str] = {}
    for item in texts:
        line = clipped(one_line(item), LONGEST_ITEM)
        if line and not _says_nothing(line):
            items.setdefault(plain_key(line), line)
    return tuple(items.values())[-MOST_ITEMS:]


def _in_few_words(summary: Summary) -> Summary:
    """Return a static-buffer summary within its limit: the context first, then the newest items of the lists."""
    context = within_words(summary.context, WORD_LIMIT // 2)
    left = WORD_LIMIT - counted_words(context)
    lists: dict[str, list[str]] = {"constraints": [], "done": []}
    for name in ("constraints", "done"):
        share = left / 2 if name == "constraints" else left
        for item in reversed(getattr(summary, name)):
            words = counted_words(item)
            if words > share:
                break
            lists[name].insert(0, item)
            share -= words
            left -= words
    return replace(summary, context=context, constraints=tuple(lists["constraints"]), done=tuple(lists["done"]))


# The parts of an answer


def sections_of(text: str) -> dict[Field, list[str]] | CutOff | None:
    """Return the items of each part of an answer (JSON, broken JSON, or headings with lists); None if it has no parts.

    Example: "## Decisions\\n- use SQLite\\n## Next\\n- tests" -> {"decisions": ["use SQLite"], "next": ["tests"]}
    """
    text = text[:LARGEST]
    inner = _unfenced(text)
    at = inner.find("{")
    if at >= 0 and _KEY.match(inner[at + 1 :].lstrip()):
        return _from_json(inner[at:])
    if text.count("```") % 2:
        return CutOff()
    return _from_lines(inner) or None


def _unfenced(text: str) -> str:
    """Return the content of the code fence if that is most of the answer, otherwise the answer."""
    fence = _FENCE.search(text)
    if fence and len(fence[1]) * 2 > len(text):
        return fence[1]
    opened = re.match(r"^\s*```[\w-]*[ \t]*\n", text)
    return text[opened.end() :] if opened and not fence else text


def _from_json(text: str) -> dict[Field, list[str]] | CutOff | None:
    for attempt in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return _from_object(value) or _unnamed(value) or None
    bare = _ITEM.sub("", text)
    if bare.count("{") > bare.count("}") or bare.count("[") > bare.count("]"):
        return CutOff()
    return _from_broken(text) or None


def _from_object(value: Json) -> dict[Field, list[str]]:
    sections: dict[Field, list[str]] = {}
    if not isinstance(value, dict):
        return sections
    for key, inner in value.items():
        field = field_named(key)
        if field is not None:
            sections.setdefault(field, []).extend(_texts(inner))
        elif isinstance(inner, dict):
            for name, items in _from_object(inner).items():
                sections.setdefault(name, []).extend(items)
    return sections


def _unnamed(value: Json) -> dict[Field, list[str]]:
    """Return all texts of an object with unknown keys as context."""
    texts = [text for inner in value.values() for text in _texts(inner) if text] if isinstance(value, dict) else []
    return {"context": texts} if texts else {}


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts in a value: a text, a list of texts, or objects as "name: text". Deeper levels are left out."""
    if isinstance(value, list):
        for inner in value:
            yield from [_flat(inner)]
    elif isinstance(value, dict):
        yield from (f"{name}: {_flat(inner)}" for name, inner in value.items())
    else:
        yield _flat(value)


def _flat(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ": ".join(str(inner) for inner in value.values() if isinstance(inner, str | int | float))
    if isinstance(value, list):
        return ", ".join(str(inner) for inner in value if isinstance(inner, str | int | float))
    return "" if value is None or isinstance(value, bool) else str(value)


def _from_broken(text: str) -> dict[Field, list[str]]:
    """Return the parts of invalid JSON, by its keys and the strings between them."""
    sections: dict[Field, list[str]] = {}
    keys = list(_KEY.finditer(text))
    for key, after in zip(keys, [*keys[1:], None], strict=True):
        field = field_named(key[1])
        if field is not None:
            body = text[key.end() : after.start() if after else len(text)]
            items = list(_ITEM.finditer(body)) or list(_SINGLE.finditer(body))
            sections.setdefault(field, []).extend(item[1] for item in items if item[1].strip())
    return {field: items for field, items in sections.items() if items}


def _from_lines(text: str) -> dict[Field, list[str]]:
    sections: dict[Field, list[str]] = {}
    current: Field | None = None
    listed, skipping = True, False
    lead: list[str] = []
    for line in map(str.rstrip, text.splitlines()):
        head = _headed(line, listed=listed)
        if head is None and _HEADING.match(line):
            skipping = current is not None  # a part that was not asked for
            continue
        if head is not None:
            current, rest = head
            listed, skipping = _BULLET.match(line) is not None, False
        bare = _BULLET.sub("", line if head is None else rest).strip()
        if bare and not skipping:
            (lead if current is None else sections.setdefault(current, [])).append(bare)
    if sections and lead and "context" not in sections and not lead[-1].endswith((":", "：")):
        sections["context"] = lead
    return sections


def _headed(line: str, *, listed: bool) -> tuple[Field, str] | None:
    """Return the part that a line begins, and the rest of the line. List items begin parts only if `listed`."""
    if heading := _HEADING.match(line) or _BOLD.match(line):
        field, rest = field_named(heading[1]), ""
    elif (label := _LABEL.match(line)) and (listed or "**" in line or not _BULLET.match(line)):
        field, rest = field_named(label[1]), label[2]
    else:
        return None
    return None if field is None else (field, rest)


def foreign_account(text: str, covers: int) -> JsonText:
    """Return a summary by another program in the form that a point stores; "" if it is empty.

    Presets can then place it, and the next summary continues from it.
    """
    if not text.strip():
        return ""
    return encode_summary(Summary(style="free", language=spoken([text]), context=text.strip(), covers=covers))
