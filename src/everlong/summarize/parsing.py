"""A model's answer to a summary, or the reason why it is none. Never raises, never guesses at what was meant.

Answers come as JSON, as JSON in a fence, as headings with lists, or as prose; the first three fill the parts of the
style, prose becomes a summary in free text. What is empty, refused, cut off or no summary at all is turned away.
"""

import re
from dataclasses import replace

from everlong.core import Message, Reasoning
from everlong.summarize.parts import CONTEXT_LIMIT, FALLBACK_LIMIT, FREE_LIMIT, LISTS, WORD_LIMIT, Field
from everlong.summarize.prompts import asked_lines
from everlong.summarize.sections import CutOff, sections_of
from everlong.summarize.sentences import clipped, counted_words, one_line, plain_key, within_words
from everlong.summarize.signs import no_summary
from everlong.summarize.summary import Facts, Style, Summary

__all__ = ["parsed"]

LONGEST_ANSWER = 100_000  # characters
LONGEST_ITEM = 600  # characters
MOST_ITEMS = 40  # of one part
LONGEST_NOTHING = 80  # characters
FAR_TOO_LONG = 6  # times what was asked for in prose
REPEATED_LINES = 8  # more lines than that, most of them alike, are a model that is stuck
ECHOED_SHARE = 0.5  # of the lines

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning|analysis|scratchpad)>", re.IGNORECASE)
_LATE_THOUGHT = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_WRAPPER = re.compile(r"<(summary|answer|output|result|response)>", re.IGNORECASE)
_NOTHING = re.compile(
    r"\W*(?:none|n/?a|nothing|null|not applicable|unknown|无|没有|暂无|不适用"
    r"|no (?:\w+ )?(?:decisions?|constraints?|questions?|changes?|files?|tasks?|steps?)(?: \w+)?)?\W*",
    re.IGNORECASE,
)


def parsed(answer: Message, style: Style, language: str) -> Summary | str:
    """The summary in an answer, or the reason why there is none.

    Example: the answer '{"decisions": ["use SQLite"]}' -> Summary(decisions=("use SQLite",))
    """
    if answer.calls:
        return "a tool call instead of a summary"
    if len(answer.text) > LONGEST_ANSWER:
        return f"{len(answer.text):,} characters long, far too long for a summary"
    text = _spoken(answer.text)
    if not text:
        thought = any(isinstance(part, Reasoning) for part in answer.parts) or answer.text.strip()
        return "only reasoning, no summary" if thought else "an empty answer"
    if reason := no_summary(text) or _worn(text, style, language):
        return reason
    if style == "free":
        return _prose(text, style, language, FREE_LIMIT)
    sections = sections_of(text)
    if isinstance(sections, CutOff):
        return "cut off before its end"
    if sections is None:
        return _prose(text, style, language, FALLBACK_LIMIT)
    return _filled(sections, style, language)


def _spoken(text: str) -> str:
    """The answer without thinking aloud and without a tag around the whole."""
    bare = _without_thoughts(text).strip()
    while wrapped := _WRAPPER.match(bare):
        closing = f"</{wrapped[1]}>"
        bare = bare[wrapped.end() :].removesuffix(closing).strip()
    return bare if any(character.isalnum() for character in bare) else ""


def _without_thoughts(text: str) -> str:
    """What is said after and between thoughts; nothing after one that never ends. Some models lose the opening tag."""
    said, at = [], 0
    while opening := _THOUGHT.search(text, at):
        said.append(text[at : opening.start()])
        closing = re.compile(f"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            return "".join(said)
        at = closing.end()
    rest = text[at:]
    late = list(_LATE_THOUGHT.finditer(rest))
    return "".join(said) + (rest[late[-1].end() :] if late else rest)


def _worn(text: str, style: Style, language: str) -> str:
    """Whether it only repeats: itself, or what it was asked."""
    lines = [key for key in map(plain_key, text.splitlines()) if key]
    if len(lines) > REPEATED_LINES and len(set(lines)) <= len(lines) // 2:
        return "the same lines again and again"
    words = text.split()
    if len(words) > 200 and len(set(words)) < len(words) // 20:
        return "the same words again and again"
    asked = asked_lines(style, language)
    if sum(line in asked for line in lines) > ECHOED_SHARE * len(lines):
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
        return f"{len(bare)} characters where at most {limit} were asked for"
    if _says_nothing(bare):
        return "nothing in it"
    claimed = tuple(sections.get("requests", ())) if sections else ()
    return Summary(style="free", language=language, context=clipped(bare, limit), facts=Facts(requests=claimed))


def _filled(sections: dict[Field, list[str]], style: Style, language: str) -> Summary | str:
    context = " ".join(sections.get("context", ()))
    context = "" if _says_nothing(context) else context
    lists = {name: _items(sections.get(name, [])) for name in LISTS}
    if not context and not any(lists.values()):
        return "nothing in it"
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


def _items(found: list[str]) -> tuple[str, ...]:
    """Each item once, on one line, within bounds; the newest are kept."""
    kept: dict[str, str] = {}
    for item in found:
        line = clipped(one_line(item), LONGEST_ITEM)
        if line and not _says_nothing(line):
            kept.setdefault(plain_key(line), line)
    return tuple(kept.values())[-MOST_ITEMS:]


def _in_few_words(summary: Summary) -> Summary:
    """A static-buffer summary within its limit: what is going on now first, then the newest of the rest."""
    context = within_words(summary.context, WORD_LIMIT // 2)
    left = WORD_LIMIT - counted_words(context)
    kept: dict[str, list[str]] = {"constraints": [], "done": []}
    for name in ("constraints", "done"):
        share = left / 2 if name == "constraints" else left
        for item in reversed(getattr(summary, name)):
            words = counted_words(item)
            if words > share:
                break
            kept[name].insert(0, item)
            share -= words
            left -= words
    return replace(summary, context=context, constraints=tuple(kept["constraints"]), done=tuple(kept["done"]))
