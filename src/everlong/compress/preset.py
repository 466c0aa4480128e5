"""The shape of a preset: one value that says everything about one way to keep a conversation inside its window.

The engine, the gateway, the app, the commands and the lab do what the value says; nobody asks for its name. Each
preset is a file in `everlong.compress.presets`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from everlong.compress.draft import Step
from everlong.compress.options import Option, Scalar
from everlong.compress.steps.custom import Assembler, Compressor, assembled_by, compressed_by
from everlong.compress.steps.emergency import floor
from everlong.compress.steps.images import images
from everlong.core import Message

__all__ = ["HistoryWindow", "Preset", "SummaryPolicy", "SummaryStyle"]

#: How a summary is written; `everlong.summarize` has the parts and a prompt for each.
#: structured: sections, ours and the default. free: prose. rolling: structured, merged every few rounds.
#: buffer: what happened, details, ongoing context. chat: done, state, context, next.
SummaryStyle: TypeAlias = Literal["structured", "free", "rolling", "buffer", "chat"]

UNKNOWN_WINDOW = 128_000  # tokens
USUAL_THRESHOLD = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """How much of a history a document sends, whatever the model's window takes.

    `messages` and `characters` (of one message) are reported with every compaction. `start` returns the index of the
    first message that is still sent as it is.
    """

    messages: int | None = None
    characters: int | None = None
    start: Callable[[Sequence[Message]], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """When a summary of the thread is written, in which style, and where it is placed in a request.

    If `automatic` is off, summaries are written only if the settings switch them on. A summary is due
    - with `rounds`, after so many rounds that no summary covers;
    - with `evicts_before`, which returns the index of the first message that is still sent as it is, as soon as a
      message before it is covered by no summary; it covers those messages;
    - with `due`, from so many tokens of a request on, by window and threshold;
    - otherwise, shortly before the compaction threshold.

    The place matters to presets that assemble every request again: a message of the history, or `in_system` text;
    always, or `when_needed` because the history does not fit; with `replaces`, what the summary covers is no longer
    sent.
    """

    style: SummaryStyle = "structured"
    automatic: bool = True
    due: Callable[[int, float], int] | None = None
    rounds: int | None = None
    evicts_before: Callable[[Sequence[Message]], int] | None = None
    in_system: bool = False
    when_needed: bool = False
    replaces: bool = False
    #: Whether none is begun by itself while nobody knows the window of the model.
    needs_window: bool = False

    @property
    def by_count(self) -> bool:
        """Whether messages are counted to see if a summary is due, and not tokens."""
        return self.rounds is not None or self.evicts_before is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named way to keep a conversation inside its window."""

    name: str
    #: Shape each message by itself when it arrives; it keeps that form.
    arrival: tuple[Step, ...] = ()
    #: Bring the whole history under the target, cheapest loss first.
    compaction: tuple[Step, ...] = ()
    #: One's own in place of the steps of a compaction, and who puts the request together when they are done. A preset
    #: with one of them assembles every request again.
    compressor: Compressor | None = None
    assembler: Assembler | None = None
    #: What comes below them: it fits, or raises BudgetImpossible with the sizes.
    emergency: tuple[Step, ...] = (floor,)
    #: The steps after a provider refused a request as too long; None: those of a compaction.
    overflow: tuple[Step, ...] | None = None
    #: Whether every request is assembled again from the raw history, full or not, as the documents want it.
    every_call: bool = False
    #: Whether everything is sent as it is and nothing is compacted, recalled or summarised.
    untouched: bool = False
    #: Whether the task (the first user message) and the newest form of what the client sends again stay as well.
    keeps_task: bool = False
    history: HistoryWindow = HistoryWindow()
    #: The tokens that messages may take, by window and reserve for the answer; None: what the window leaves.
    budget: Callable[[int, int], int] | None = None
    summary: SummaryPolicy = SummaryPolicy()
    #: The share of what it can move at which something is due, where nobody set one.
    threshold: float = USUAL_THRESHOLD
    #: Tokens to assume if nobody knows the window of a model.
    unknown_window: int = UNKNOWN_WINDOW
    #: What an agent starts with under it, by the names of the agent's settings, where nobody set them.
    agent: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    #: Whether the lab has measured what each threshold of it costs and keeps.
    measured: bool = False
    #: The settings of its own that people may set, and the preset with some of them set.
    options: tuple[Option, ...] = ()
    configure: Callable[[Mapping[str, Scalar]], "Preset"] | None = None

    def __post_init__(self) -> None:
        if self.compressor is not None or self.assembler is not None:
            object.__setattr__(self, "every_call", True)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a compaction, in order."""
        steps = self.compaction if self.compressor is None else (compressed_by(self.compressor),)
        return steps if self.assembler is None else (*steps, assembled_by(self.assembler))

    def configured(self, options: Mapping[str, Scalar] = MappingProxyType({})) -> "Preset":
        """Return the preset with these options; those of other presets are ignored."""
        if self.configure is None:
            return self
        known = {option.name: option.default for option in self.options}
        return self.configure(known | {name: options[name] for name in known if name in options})

    @property
    def after_overflow(self) -> "Preset":
        """The preset for the request that follows a refusal."""
        return self if self.overflow is None else replace(self, compaction=self.overflow)

    def within_bytes(self, most: int) -> "Preset":
        """Return the preset for a provider that takes so many bytes: the newest pictures stay, within half of it."""
        lighter: Step = partial(images, most_bytes=most // 2)
        overflow = None if self.overflow is None else (lighter, *self.overflow)
        return replace(self, compaction=(lighter, *self.compaction), overflow=overflow)

    @property
    def due_by_tokens(self) -> bool:
        """Whether only the size of a request decides what is due, so that far from the threshold nothing is."""
        return not self.every_call and not self.untouched
