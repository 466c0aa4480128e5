"""Every strategy by its name: everlong's presets, the baselines, the peers, and functions of your own.

everlong                what everlong does by itself: its preset auto
auto, nanobot, …        everlong's presets
auto+static, auto+PATH  a preset with the setting `semantic`
newest, bm25, …         baselines
langmem, strands, …     peers, each in an environment of its own
module:function         your own: OpenAI messages and a budget in, OpenAI messages out
"""

from functools import cache
from time import perf_counter

from everlong.compress import PRESETS, Preset
from everlong.core import History, did_you_mean, function_named
from everlong.engine import DEFAULT_SETTINGS, ViewOptions, view_of
from everlong.errors import InputError
from everlong.lab.strategies.baselines import cleared, newest, trimmed, user_newest, whole
from everlong.lab.strategies.bm25 import bm25, bm25_neighbours, half_bm25
from everlong.lab.strategies.strategy import Select, Strategy, counter, from_chat, plain
from everlong.relevance import Index, Likeness, computed_likeness
from everlong.wire import OPENAI_CHAT

__all__ = ["BASELINES", "DIALOGUE_STRATEGIES", "OURS", "WORK_STRATEGIES", "strategy_named", "strategy_names"]

#: Another name for the preset that everlong uses by default.
OURS = "everlong"
#: Separates a preset and a value of the setting `semantic`. Example: auto+static
SEMANTIC = "+"


BASELINES: dict[str, Select] = {
    "newest": newest,
    "user-newest": user_newest,
    "trimmed": trimmed,
    "cleared": cleared,
    "half-bm25": half_bm25,
    "bm25": bm25,
    "bm25-neighbours": bm25_neighbours,
    "whole": whole,
}
#: The strategies that are measured by default.
WORK_STRATEGIES = ("newest", "trimmed", "cleared", "half-bm25", "auto")
DIALOGUE_STRATEGIES = ("newest", "user-newest", "bm25", "bm25-neighbours", "auto")


@cache
def strategy_named(name: str) -> Strategy:
    """Return the strategy with that name. Raises InputError that lists the existing ones."""
    preset, _, semantic = name.partition(SEMANTIC)
    if preset in PRESETS or preset == OURS:
        return _preset_strategy(name, PRESETS[DEFAULT_SETTINGS.rules.name if preset == OURS else preset], semantic)
    if name in BASELINES:
        return plain(name, BASELINES[name])
    if ":" in name:
        return from_chat(name, function_named(name))
    from everlong.lab.peers import PEER_NAMES, open_peer  # noqa: PLC0415 - only where one is named

    if name in PEER_NAMES:
        peer = open_peer(name)
        return Strategy(name, lambda: peer, clock=perf_counter)  # not CPU time: another process does the work
    known = strategy_names()
    listed = f"use {', '.join(known)}, or module:function for your own"
    raise InputError(f"unknown strategy {name!r}; {listed}{did_you_mean(name, known)}")


def strategy_names() -> tuple[str, ...]:
    """Return the names that `strategy_named` knows, apart from your own functions."""
    from everlong.lab.peers import PEER_NAMES  # noqa: PLC0415 - only where a name is wrong

    return (OURS, *PRESETS, *BASELINES, *PEER_NAMES)


def _preset_strategy(name: str, preset: Preset, semantic: str) -> Strategy:
    """Return a preset as a strategy, used as in `fit`. Every call cuts afresh; only the index is kept."""
    likeness = computed_likeness(semantic) if semantic else None
    return Strategy(name, lambda: _begin(preset, likeness))


def _begin(preset: Preset, likeness: Likeness | None) -> Select:
    # As in the engine. The step takes a new index itself if this one has seen later messages.
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
            likeness=likeness,
        )
        return view_of(messages, options).messages

    return select
