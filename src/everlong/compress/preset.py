"""The shape of a preset: one value that says everything about one way to keep a conversation inside its window.

The engine, the gateway, the app, the commands and the lab follow the value and never check its name. Each preset is a
file in `everlong.compress.presets`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from everlong.compress.draft import Step
from everlong.compress.options import Option, Scalar
from everlong.compress.steps.custom import Assembler, Compressor, assembled_by, compressed_by
from everlong.compress.steps.emergency import floor
from everlong.compress.steps.trims.images import images
from everlong.core import Message, did_you_mean, expect, expect_function, expect_text
from everlong.errors import InputError

__all__ = ["HistoryWindow", "Preset", "SummaryPolicy", "SummaryStyle"]

#: The styles of summaries; `everlong.summarize` has the parts and a prompt for each. structured: sections, the default.
#: free: prose. rolling: structured, merged every few rounds. buffer: what happened, details, ongoing context. chat:
#: done, state, context, next.
SummaryStyle: TypeAlias = Literal["structured", "free", "rolling", "buffer", "chat"]

UNKNOWN_WINDOW = 128_000  # tokens
USUAL_THRESHOLD = 0.90
SHARE = "a share above 0 and up to 1, such as 0.9"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """How much of a history a preset sends, however large the model's context window is.

    `messages` and `characters` (per message) are reported with every compaction. `start` returns the index of the first
    message that is still sent unchanged.
    """

    messages: int | None = None
    characters: int | None = None
    start: Callable[[Sequence[Message]], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """When a summary of the thread is written, in which style, and where it stands in a request.

    - `style`: the style of the summary.
    - `automatic`: if off, summaries are written only if the settings switch them on.
    - `rounds`: a summary is due after this many rounds that no summary covers.
    - `evicts_before`: returns the index of the first message that is still sent unchanged. A summary is due as soon as
      an earlier message is not covered by one, and covers those messages.
    - `due`: returns the tokens of a request at which a summary is due, given window and threshold. Without any of these
      three, a summary is due shortly before the compaction threshold.
    - `in_system`: whether the summary stands in the system text instead of the history.
    - `when_needed`: whether it is sent only when the history does not fit.
    - `replaces`: whether the messages that it covers are no longer sent.
    - `needs_window`: do not start a summary automatically while the window is unknown.
    - `in_work`: whether a model also summarises conversations with tools; otherwise code records their state.
    """

    style: SummaryStyle = "structured"
    automatic: bool = True
    due: Callable[[int, float], int] | None = None
    rounds: int | None = None
    evicts_before: Callable[[Sequence[Message]], int] | None = None
    in_system: bool = False
    when_needed: bool = False
    replaces: bool = False
    needs_window: bool = False
    in_work: bool = True

    def __post_init__(self) -> None:
        styles = get_args(SummaryStyle)
        if self.style not in styles:
            meant = did_you_mean(str(self.style), styles)
            raise InputError(f"style of SummaryPolicy must be one of {', '.join(styles)}, not {self.style!r}{meant}")

    @property
    def by_count(self) -> bool:
        """Whether the number of messages, not of tokens, decides when a summary is due."""
        return self.rounds is not None or self.evicts_before is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named strategy for keeping a conversation within its context window.

    - `name`: its name in settings.
    - `arrival`: steps that change each message once, when it arrives.
    - `compaction`: steps that bring the whole history under the target, cheapest loss first.
    - `compressor`: your own function, used instead of the compaction steps; `assembler` then builds the request. A
      preset with one of them assembles every request from the full history.
    - `emergency`: the last resort: it fits, or raises BudgetImpossible with the sizes.
    - `overflow`: the steps after a provider refused a request as too long; None for those of a compaction.
    - `every_call`: whether every request is assembled from the full history.
    - `untouched`: whether messages are sent unchanged, without compaction, recall or summaries.
    - `keeps_task`: whether the task (the first user message) and the newest version of what the client repeats stay.
    - `history`: how much history is sent, however large the window is.
    - `budget`: returns the tokens for messages, given window and reserve; None for what the window leaves.
    - `summary`: when and how summaries are written.
    - `threshold`: the default threshold; `unknown_window`: the window to assume if it is unknown.
    - `agent`: default settings of the agent under this preset.
    - `measured`: whether the lab has measured what its thresholds cost and keep.
    - `options`, `configure`: its own options, and a function that returns the preset with some of them set.
    """

    name: str
    arrival: tuple[Step, ...] = ()
    compaction: tuple[Step, ...] = ()
    compressor: Compressor | None = None
    assembler: Assembler | None = None
    emergency: tuple[Step, ...] = (floor,)
    overflow: tuple[Step, ...] | None = None
    every_call: bool = False
    untouched: bool = False
    keeps_task: bool = False
    history: HistoryWindow = HistoryWindow()
    budget: Callable[[int, int], int] | None = None
    summary: SummaryPolicy = SummaryPolicy()
    threshold: float = USUAL_THRESHOLD
    unknown_window: int = UNKNOWN_WINDOW
    agent: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    measured: bool = False
    options: tuple[Option, ...] = ()
    configure: Callable[[Mapping[str, Scalar]], "Preset"] | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.compressor is not None or self.assembler is not None:
            object.__setattr__(self, "every_call", True)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a compaction, in order."""
        steps = self.compaction if self.compressor is None else (compressed_by(self.compressor),)
        return steps if self.assembler is None else (*steps, assembled_by(self.assembler))

    def configured(self, options: Mapping[str, Scalar] = MappingProxyType({})) -> "Preset":
        """Return the preset with these options. Options of other presets are ignored."""
        if self.configure is None:
            return self
        known = {option.name: option.default for option in self.options}
        return self.configure(known | {name: options[name] for name in known if name in options})

    @property
    def after_overflow(self) -> "Preset":
        """The preset for the request that follows a refusal."""
        return self if self.overflow is None else replace(self, compaction=self.overflow)

    def within_bytes(self, most: int) -> "Preset":
        """Return the preset for a provider with a limit in bytes: the newest images stay, up to half of it."""
        lighter: Step = partial(images, most_bytes=most // 2)
        overflow = None if self.overflow is None else (lighter, *self.overflow)
        return replace(self, compaction=(lighter, *self.compaction), overflow=overflow)

    @property
    def due_by_tokens(self) -> bool:
        """Whether only the size of a request decides what is due."""
        return not self.every_call and not self.untouched


def _check(preset: Preset) -> None:
    """Raise InputError for the first field with a wrong value. Example: "compaction of preset 'mine' must be …" """
    expect_text("name of a preset", preset.name)
    if not preset.name.strip():
        raise InputError("a preset needs a name, such as Preset(name='mine')")
    named = f"of preset {preset.name!r}"
    for name in ("arrival", "compaction", "emergency", "overflow"):
        steps = getattr(preset, name)
        if name != "overflow" or steps is not None:
            _check_steps(f"{name} {named}", steps)
    for name in ("compressor", "assembler"):
        function = getattr(preset, name)
        if function is not None:
            expect_function(f"{name} {named}", function, "a function")
    expect(f"history {named}", preset.history, HistoryWindow, "a HistoryWindow, such as HistoryWindow(messages=20)")
    expect(f"summary {named}", preset.summary, SummaryPolicy, "a SummaryPolicy, such as SummaryPolicy(rounds=10)")
    expect(f"threshold {named}", preset.threshold, (int, float), SHARE)
    if not 0 < preset.threshold <= 1:
        raise InputError(f"threshold {named} must be {SHARE}, not {preset.threshold!r}")


def _check_steps(name: str, steps: object) -> None:
    expect(name, steps, tuple, "a tuple of steps, such as (newest,)")
    assert isinstance(steps, tuple)
    for at, step in enumerate(steps):
        expect_function(f"step {at + 1} in {name}", step, "a function, such as newest")
