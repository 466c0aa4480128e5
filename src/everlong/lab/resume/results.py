"""The results of `resume`: plain values that the terminal, the page, JSON and tests all read."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from everlong.lab.measures.presence import Sent
from everlong.lab.resume.needs import NEED_KINDS
from everlong.lab.resume.record import Asked

__all__ = ["Figures", "Judged", "Outcome", "ResumeResult", "judged", "summed_resume"]

#: What became of the earlier result of a repeated call: it is no longer the same, it is still there, it is gone.
Again: TypeAlias = Literal["changed", "kept", "gone"]
MOST_EXAMPLES = 5
LONGEST_EXAMPLE = 80  # characters


@dataclass(frozen=True, slots=True)
class Judged:
    """One call after a compaction. `needs` has the kind of each need, whether it is there, and whether strictly."""

    asked: Asked
    needs: tuple[tuple[str, bool, bool], ...]
    edits: int
    again: Again | None

    @property
    def whole(self) -> bool:
        """Return whether everything that the call needs is there."""
        return all(there for _, there, _ in self.needs)

    @property
    def strict(self) -> bool:
        """Return whether everything that the call needs is there word for word."""
        return all(strict for _, _, strict in self.needs)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One compaction with one strategy: what it was allowed to send, what it sent, and the calls that followed."""

    session: str
    source: str
    budget: int
    tokens: int
    calls: tuple[Judged, ...]


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts. Of the next calls after each compaction, only those with a need are counted as `calls`.

    `whole` calls have all their needs; `there` are needs that are there; `_strict` means outside lists of names and
    summaries. `resumed` are compactions after which all of these calls are whole, strictly. `edits` are texts of two or
    more lines that a call replaces. `after` are all calls up to the next compaction, and `repeated` those that had been
    made before it. Of these, `changed` had another result then; of the rest, the earlier result is `kept` whole or
    `gone`.
    """

    compactions: int = 0
    resumed: int = 0
    calls: int = 0
    whole: int = 0
    whole_strict: int = 0
    needs: int = 0
    there: int = 0
    there_strict: int = 0
    edits: int = 0
    edits_whole: int = 0
    after: int = 0
    repeated: int = 0
    changed: int = 0
    kept: int = 0
    gone: int = 0
    #: By kind: needs, there, strictly there.
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Count one compaction."""
        self.compactions += 1
        self.resumed += all(call.strict for call in outcome.calls)
        self.after += len(outcome.calls)
        for call in outcome.calls:
            self._add(call)

    def _add(self, call: Judged) -> None:
        if call.needs:
            self.calls += 1
            self.whole += call.whole
            self.whole_strict += call.strict
        for kind, there, strict in call.needs:
            needs, found, strictly = self.kinds.get(kind, (0, 0, 0))
            self.kinds[kind] = (needs + 1, found + there, strictly + strict)
            self.needs += 1
            self.there += there
            self.there_strict += strict
        self.edits += len(call.asked.edits)
        self.edits_whole += call.edits
        if call.again is not None:
            self.repeated += 1
            setattr(self, call.again, getattr(self, call.again) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeResult:
    """One strategy in one window. `preset` made the compactions; if `played`, the figures are its own.

    `tokens` is the mean size at a compaction, `over` is how many requests were larger than the preset's, `failed` how
    many were empty. `examples` are missing needs, as (session, message, kind, string).
    """

    preset: str
    window: int
    overhead: int
    strategy: str
    played: bool
    sessions: int
    tokens: float
    over: int
    failed: int
    figures: Figures
    sources: dict[str, Figures]
    examples: tuple[tuple[str, int, str, str], ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return every figure as JSON, with those of all sources."""
        raw = asdict(self)
        figures: dict[str, object] = raw.pop("figures")
        return {**raw, **figures}


def judged(asked: Asked, sent: Sent) -> Judged:
    """Search for everything that a call needs in what is sent."""
    needs = tuple((need.kind, *_presence(need.text, sent)) for need in asked.needs)
    again: Again | None = None
    if asked.repeat is not None:
        again = "changed" if not asked.repeat.same else "kept" if sent.has_lines(asked.repeat.earlier) else "gone"
    return Judged(asked, needs, sum(map(sent.has_lines, asked.edits)), again)


def _presence(text: str, sent: Sent) -> tuple[bool, bool]:
    there = sent.has(text)
    return there, there and sent.has_verbatim(text)


def summed_resume(
    place: tuple[str, int, int], strategy: str, outcomes: Sequence[Outcome], *, played: bool
) -> ResumeResult:
    """Sum up one strategy at all compactions of a preset in a window with an overhead."""
    preset, window, overhead = place
    total = Figures()
    sources: dict[str, Figures] = {}
    for outcome in outcomes:
        for figures in (total, sources.setdefault(outcome.source, Figures())):
            figures.add(outcome)
    for figures in (total, *sources.values()):
        figures.kinds = {kind: figures.kinds[kind] for kind in NEED_KINDS if kind in figures.kinds}
    return ResumeResult(
        preset=preset,
        window=window,
        overhead=overhead,
        strategy=strategy,
        played=played,
        sessions=len({outcome.session for outcome in outcomes}),
        tokens=sum(outcome.tokens for outcome in outcomes) / max(1, len(outcomes)),
        over=sum(outcome.tokens > outcome.budget for outcome in outcomes),
        failed=sum(not outcome.tokens for outcome in outcomes),
        figures=total,
        sources={name: sources[name] for name in sorted(sources)},
        examples=_examples(outcomes),
    )


def _examples(outcomes: Iterable[Outcome]) -> tuple[tuple[str, int, str, str], ...]:
    found: list[tuple[str, int, str, str]] = []
    for outcome in outcomes:
        missing = [
            (outcome.session, call.asked.at, need.kind, need.text[:LONGEST_EXAMPLE])
            for call in outcome.calls
            for need, (_, _, strict) in zip(call.asked.needs, call.needs, strict=True)
            if not strict
        ]
        found += missing[:1]  # one per compaction, so that they differ
        if len(found) >= MOST_EXAMPLES:
            break
    return tuple(found[:MOST_EXAMPLES])
