"""Our own presets as strategies: the way `fit` takes, with no switch of the lab's own."""

from dataclasses import replace
from functools import partial

from everlong.compress import Preset, by_need
from everlong.core import History
from everlong.engine import Wish, view_of
from everlong.lab.strategy import Select, Strategy, counter
from everlong.relevance import Index
from everlong.wire import openai_chat

__all__ = ["of_preset"]


def of_preset(preset: Preset) -> Strategy:
    """The preset, cutting anew at every call: nothing of an earlier cut is kept but the index of what was read."""
    return Strategy(preset.name, lambda: _begun(preset))


def _begun(preset: Preset) -> Select:
    # As the engine does it. The step itself takes a new index where this one knows more than it may.
    index = Index()
    steps = tuple(partial(by_need, index=index) if step is by_need else step for step in preset.cut)
    sharing = replace(preset, cut=steps)

    def select(messages: History, budget: int) -> History:
        counting = counter()
        room = int(budget / (1 + counting.vocabulary.spread))
        wish = Wish(counter=counting, limit=room, target=room, preset=sharing, window=budget, fmt=openai_chat.FORMAT)
        return view_of(messages, wish).messages

    return select
