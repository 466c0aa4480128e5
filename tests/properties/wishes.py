"""What the property tests ask of a view: any preset, any format, any budget, over histories of any size.

Sizes are drawn, not texts: a history is made as usual and some of its words are replaced by long ones from a
pool, so that a handful of messages can pass any budget.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from everlong.compress import PRESETS, Preset
from everlong.core import History, Message, Opaque, Part, Reasoning, Text, ToolResult
from everlong.engine import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible
from everlong.tokens import Counter
from tests.properties.histories import FORMATS, Dice, conversations, histories

__all__ = ["COUNTER", "LIMITS", "PRESET_NAMES", "ROLLING", "attempt", "broken", "proper", "seen", "wish_of", "wishes"]

#: One for all, so that what was counted once stays counted.
COUNTER = Counter("gpt-4o")
PRESET_NAMES = tuple(PRESETS)
#: Presets that keep what they sent; the others trim before every call, as their documents ask.
ROLLING = tuple(name for name, preset in PRESETS.items() if not preset.every_call)

LIMITS = (60, 300, 1_000, 3_000, 12_000)  # tokens; the smallest is too small for nearly anything
WINDOWS = (2_000, 16_000, 128_000)

PHRASES = (
    "The port is set in config.yaml, line 42; restart the service. ",
    "请把配置文件里的端口改成 8080，然后重启服务。",
    "2026-01-01T00:00:00 INFO worker-7 request 4711 took 35 ms\n",
    '{"id": 1, "name": "Ann", "tags": ["a", "b"]},\n',
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo",
    "👩‍👩‍👧‍👦🇨🇳é",
    "a",
)
SIZES = (200, 2_000, 20_000)  # characters
LONG = tuple((phrase * (size // len(phrase) + 1))[:size] for size in SIZES for phrase in PHRASES)


@st.composite
def proper(draw: st.DrawFn, max_rounds: int = 5) -> History:
    """What a careful client keeps, of any size; it ends with a question or with results."""
    history = _sized(draw, draw(conversations(max_rounds)))
    return history[:-1] if draw(st.booleans()) else history


@st.composite
def broken(draw: st.DrawFn, max_messages: int = 10) -> History:
    """Anything at all, of any size."""
    return _sized(draw, draw(histories(max_messages)))


@st.composite
def wishes(draw: st.DrawFn, preset: str, *, deep: bool = False, pins: bool = False) -> ViewOptions:
    """A format, a budget and a window for a preset; with `deep` a cut goes well below the limit."""
    fmt, limit = draw(st.sampled_from(FORMATS)), draw(st.sampled_from(LIMITS))
    wish = wish_of(PRESETS[preset], fmt, limit, window=draw(st.sampled_from(WINDOWS)), deep=deep)
    return replace(wish, pins=draw(st.frozensets(st.integers(0, 12), max_size=2))) if pins else wish


def wish_of(preset: Preset, fmt: str, limit: int, *, window: int = 16_000, deep: bool = False) -> ViewOptions:
    """The same with everything said."""
    target = limit // 2 if deep else limit
    return ViewOptions(counter=COUNTER, limit=limit, target=target, preset=preset, window=window, fmt=fmt)


def attempt(history: History, wish: ViewOptions, previous: View | None = None) -> View | BudgetImpossible:
    """The view, or the error that says why there is none."""
    try:
        return view_of(history, wish, previous)
    except BudgetImpossible as error:
        return error


def seen(history: History, wish: ViewOptions, previous: View | None = None) -> View | None:
    """The view, if there is one."""
    view = attempt(history, wish, previous)
    return view if isinstance(view, View) else None


def _sized(draw: st.DrawFn, history: Sequence[Message]) -> History:
    """The history with about a third of its texts made long."""
    dice = Dice(draw(st.integers(0, 2**128)))
    return tuple(message.with_parts(tuple(_long(part, dice) for part in message.parts)) for message in history)


def _long(part: Part, dice: Dice) -> Part:
    if dice.throw(3) != 2 or isinstance(part, Opaque):
        return part
    match part:
        case Text() | Reasoning(signature=""):
            return replace(part, text=dice.pick(LONG))
        case ToolResult(content=(Text() as first, *rest)):
            return replace(part, content=(replace(first, text=dice.pick(LONG)), *rest))
        case _:
            return part
