"""Every strategy by its name: everlong's presets, the baselines, the peers, and functions of your own.

everlong                what everlong does by itself: its preset auto
auto, nanobot, …        everlong's presets
newest, bm25, …         baselines
langmem, strands, …     peers, each in an environment of its own
module:function         your own: OpenAI messages and a budget in, OpenAI messages out
"""

import importlib
import os
import sys
from collections.abc import Callable
from functools import cache
from time import perf_counter

from everlong.compress import PRESETS, Preset
from everlong.core import History, did_you_mean
from everlong.engine import DEFAULT_SETTINGS, ViewOptions, view_of
from everlong.errors import InputError
from everlong.lab.strategies.baselines import cleared, newest, trimmed, whole
from everlong.lab.strategies.bm25 import bm25, bm25_neighbours, half_bm25
from everlong.lab.strategies.strategy import Select, Strategy, counter, from_chat, plain
from everlong.relevance import Index
from everlong.wire import OPENAI_CHAT

__all__ = ["BASELINES", "DIALOGUE_STRATEGIES", "OURS", "WORK_STRATEGIES", "strategy_named", "strategy_names"]

#: Another name of the preset that everlong uses by itself.
OURS = "everlong"


BASELINES: dict[str, Select] = {
    "newest": newest,
    "trimmed": trimmed,
    "cleared": cleared,
    "half-bm25": half_bm25,
    "bm25": bm25,
    "bm25-neighbours": bm25_neighbours,
    "whole": whole,
}
#: What is measured if no strategy is named.
WORK_STRATEGIES = ("newest", "trimmed", "cleared", "half-bm25", "auto")
DIALOGUE_STRATEGIES = ("newest", "bm25", "bm25-neighbours", "auto")


@cache
def strategy_named(name: str) -> Strategy:
    """Return the strategy of that name. Raises InputError, which lists those that exist."""
    if name in PRESETS or name == OURS:
        return _preset_strategy(PRESETS[DEFAULT_SETTINGS.rules.name if name == OURS else name])
    if name in BASELINES:
        return plain(name, BASELINES[name])
    if ":" in name:
        return from_chat(name, _imported(name))
    from everlong.lab.peers import PEER_NAMES, open_peer  # noqa: PLC0415 - only where one is named

    if name in PEER_NAMES:
        peer = open_peer(name)
        return Strategy(name, lambda: peer, clock=perf_counter)  # CPU time would miss it: another process works
    known = strategy_names()
    listed = f"there are {', '.join(known)}, and module:function for your own"
    raise InputError(f"no strategy {name!r}; {listed}{did_you_mean(name, known)}")


def strategy_names() -> tuple[str, ...]:
    """Return the names that `strategy_named` knows, beside functions of one's own."""
    from everlong.lab.peers import PEER_NAMES  # noqa: PLC0415 - only where a name is wrong

    return (OURS, *PRESETS, *BASELINES, *PEER_NAMES)


def _preset_strategy(preset: Preset) -> Strategy:
    """Return a preset as a strategy, the way `fit` uses it. Every call cuts afresh; only the index is kept."""
    return Strategy(preset.name, lambda: _begin(preset))


def _begin(preset: Preset) -> Select:
    # As the engine does it. The step takes a new index itself if this one has seen later messages.
    index = Index()

    def select(messages: History, budget: int) -> History:
        tokens = counter()
        room = int(budget / (1 + tokens.vocabulary.spread))
        options = ViewOptions(
            counter=tokens,
            limit=room,
            target=room,
            preset=preset,
            window=budget,
            fmt=OPENAI_CHAT.name,
            index=index,
        )
        return view_of(messages, options).messages

    return select


def _imported(name: str) -> Callable[..., list[dict[str, object]]]:
    """Return the function that `module:function` names, also from the current folder."""
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds texts
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        value = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error
    if not callable(value):
        raise InputError(f"{name}: not a function")
    return value  # type: ignore[no-any-return]
