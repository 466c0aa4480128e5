"""Decide whether a summary may replace what it covers, and which sentences must go first. Never raises.

A false sentence is removed: a request nobody made, an approval nobody gave, an invented name, an order to the reader, a
foreign address. The whole summary is rejected if it is in another language, has too many inventions, outright orders or
frame tags, is too long, or has nothing left. Findings are written for people.
"""

from collections.abc import Sequence
from dataclasses import replace

from everlong.core import Message
from everlong.summarize.audit.claims import invented_in, named_in, unfounded, unsaid, unwarranted
from everlong.summarize.audit.evidence import Evidence, content_terms, evidence_of
from everlong.summarize.audit.language import differs, language_named
from everlong.summarize.audit.signs import no_summary
from everlong.summarize.audit.smuggled import foreign_address, has_tags, order_in
from everlong.summarize.parts import LISTS
from everlong.summarize.secrets.redaction import redacted
from everlong.summarize.summary import NO_FACTS, Summary, all_lines
from everlong.summarize.text import clipped, counted_words, sentences_of
from everlong.tokens import Counter

__all__ = ["audited"]

SHOWN = 100  # characters of a removed sentence in a finding
MOST_REPORTED = 20
MANY_INVENTED = 6  # invented names and figures; with more, it is a summary of something else
INVENTED_SHARE = 0.4  # or this share of all names, if there are at least three
FEW_INVENTED = 3
MUCH_COVERED, FEWEST_WORDS = 2_000, 6  # more tokens cannot be summarised in fewer words
FOREIGN_SHARE, FEWEST_TERMS = 0.25, 8  # with a smaller share of known terms, it is about something else


def audited(
    summary: Summary, covered: Sequence[Message], *, previous: Summary | None, counter: Counter, limit: int
) -> tuple[Summary, tuple[str, ...], tuple[str, ...]]:
    """Return the summary without its false sentences, what was removed and why, and the problems that forbid its use.

    Example: "Fixed a.py. The user approved a deploy.", where nobody did -> "Fixed a.py.", one removed, no problems
    """
    if summary.source == "rules":
        return summary, (), tuple(_size_problems(summary, covered, previous, counter, limit))
    evidence = evidence_of(covered, previous, summary.focus)
    sieve = _Sieve(evidence)
    clean = sieve.summary(summary)
    problems = [
        *_text_problems(summary, evidence),
        *sieve.problems(),
        *_rest_problems(clean, summary, covered, counter),
        *_size_problems(summary, covered, previous, counter, limit),
    ]
    return clean, tuple(sieve.removed[:MOST_REPORTED]), tuple(dict.fromkeys(problems))


class _Sieve:
    """One pass over a summary. It keeps the sentences that may stay and records the others."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.removed: list[str] = []
        self.orders = 0
        self.invented: set[str] = set()
        self.named: set[str] = set()

    def summary(self, summary: Summary) -> Summary:
        lists = {name: tuple(filter(None, map(self._text, getattr(summary, name)))) for name in LISTS}
        lists["next"] = tuple(step for step in lists["next"] if not self._unwarranted(step))
        requests = tuple(request for request in summary.facts.requests if not self._unsaid(request))
        clean = replace(summary, context=self._text(summary.context), facts=replace(summary.facts, requests=requests))
        return replace(clean, **lists)  # type: ignore[arg-type]

    def problems(self) -> list[str]:
        problems = []
        if self.orders:
            problems.append("gives orders to its reader")
        count = len(self.invented)
        if count >= MANY_INVENTED or (count >= FEW_INVENTED and count >= INVENTED_SHARE * len(self.named)):
            problems.append(
                f"{count} names or figures that are not in the conversation: {', '.join(sorted(self.invented)[:5])}"
            )
        return problems

    def _text(self, text: str) -> str:
        """Return the text without its false sentences and secrets; unchanged if there are none."""
        clean = redacted(text)
        if clean != text:
            self.removed.append("a secret")
        lines = []
        for line in clean.splitlines():
            sentences = sentences_of(line)
            stays = [sentence for sentence in sentences if not self._falls(sentence)]
            lines.append(line if len(stays) == len(sentences) else " ".join(stays))
        return "\n".join(filter(None, lines))

    def _falls(self, sentence: str) -> bool:
        reason = self._reason(sentence)
        if reason:
            self.removed.append(f"{reason}: “{clipped(redacted(sentence), SHOWN)}”")
        return bool(reason)

    def _reason(self, sentence: str) -> str:
        order = order_in(sentence)
        if order:
            self.orders += order == "given"
            return "an instruction to the reader"
        if foreign_address(sentence, self.evidence):
            return "an address that is not in the conversation"
        if reason := unfounded(sentence, self.evidence):
            return reason
        self.named.update(named_in(sentence))
        invented = invented_in(sentence, self.evidence)
        self.invented.update(invented)
        return f"{', '.join(invented[:3])} not in the conversation" if invented else ""

    def _unwarranted(self, step: str) -> bool:
        reason = unwarranted(step, self.evidence)
        if reason:
            self.removed.append(f"{reason}: “{clipped(step, SHOWN)}”")
        return bool(reason)

    def _unsaid(self, request: str) -> bool:
        if not unsaid(request, self.evidence):
            return False
        self.removed.append(f"a request that no user made: “{clipped(redacted(request), SHOWN)}”")
        return True


def _text_problems(summary: Summary, evidence: Evidence) -> list[str]:
    text = _own_words(summary)
    problems = []
    if reason := no_summary(summary.context):
        problems.append(f"{reason}, not a summary")
    if has_tags(text):
        problems.append("carries tags of frames or of a chat template")
    if language := differs(text, summary.language):
        problems.append(f"written in {language_named(language)}, not in {language_named(summary.language)}")
    elif _speaks_of_something_else(text, evidence):
        problems.append("is about something other than the conversation")
    return problems


def _speaks_of_something_else(text: str, evidence: Evidence) -> bool:
    """Whether few of its terms occur in what it covers. Chinese pairs change in a paraphrase and do not count."""
    terms = [term for term in content_terms(text) if term.isascii() or len(term) == 1]
    if len(terms) < FEWEST_TERMS:
        return False
    scripts_shared = any(not term.isascii() for term in terms) <= (not evidence.raw.isascii())
    return scripts_shared and sum(term in evidence.known for term in terms) < FOREIGN_SHARE * len(terms)


def _rest_problems(clean: Summary, summary: Summary, covered: Sequence[Message], counter: Counter) -> list[str]:
    left = _own_words(clean)
    if not any(character.isalnum() for character in left):
        return ["nothing is left after the audit"] if _own_words(summary) else ["says nothing"]
    if counted_words(left) < FEWEST_WORDS and counter.messages(covered) > MUCH_COVERED:
        return [f"too short for the {counter.messages(covered):,} tokens it covers"]
    return []


def _size_problems(
    summary: Summary, covered: Sequence[Message], previous: Summary | None, counter: Counter, limit: int
) -> list[str]:
    """Return problems of length. Facts do not count: they are bounded elsewhere and written within the limit."""
    problems = []
    size = counter.text(_own_words(summary))
    if size > limit:
        problems.append(f"{size:,} tokens long; the limit is {limit:,}")
    replaced = counter.messages(covered) + (0 if previous is None else counter.text("\n".join(all_lines(previous))))
    if size >= replaced:
        problems.append(f"{size:,} tokens long, no shorter than the {replaced:,} it replaces")
    return problems


def _own_words(summary: Summary) -> str:
    """Return what the model wrote, without facts and headings."""
    bare = replace(summary, facts=NO_FACTS)
    return "\n".join(line for line in all_lines(bare) if not line.startswith("## "))
