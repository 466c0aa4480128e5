"""strands' `Agent(model, messages=…, context_manager=…)`: its context manager in a real agent.

`auto` is the first preset in its documentation; `presets` names two of its strategies that keep more of a conversation.
The model has a window of the budget, counts exactly and returns an overflow error if a request does not fit; asked for
a summary, it quotes. Stashed text stays stashed: the tool that restores it needs the reference of a placeholder, which
only a model can choose.
"""

from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.models.model import Model
from strands.types.exceptions import ContextWindowOverflowException

from everlong.lab.peers.adapters.strands_sliding import MESSAGES, SYSTEM, read, write
from everlong.lab.peers.extract import extract, room_for_summary
from everlong.lab.peers.rules import text_tokens, total
from everlong.lab.peers.shapes import FAILURES, Fitting, Message

PRESETS = {"strategies": ["large_tool_offloading", "proactive_summarization"]}
ASKS_FOR_SUMMARY = "summarization assistant"

History = tuple[list[Message], list[Any]]


class _Windowed(Model):
    """A model whose window is the budget, and which remembers what it accepted."""

    def __init__(self, budget: int, system: list[Message]) -> None:
        self._budget = budget
        self._system = system
        self.accepted: list[Any] | None = None

    @property
    def context_window_limit(self) -> int:
        return self._budget

    def update_config(self, **_: Any) -> None:
        """Ignore the configuration."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("this is never called")

    async def count_tokens(self, messages: list[Any], *_: Any, **__: Any) -> int:
        return total(write((self._system, messages), []))

    async def stream(
        self, messages: list[Any], _: Any = None, system_prompt: str | None = None, **__: Any
    ) -> AsyncIterator[Any]:
        if ASKS_FOR_SUMMARY in (system_prompt or ""):
            words = "\n".join(block.get("text", "") for block in messages[0]["content"])
            answer = extract(words, room_for_summary(self._budget), text_tokens)
        elif await self.count_tokens(messages) > self._budget:
            raise ContextWindowOverflowException("too long")
        else:
            self.accepted = [dict(message) for message in messages]
            answer = "ok"
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def _way(manager: Any) -> Fitting:
    def fit(history: History, budget: int) -> History:
        model = _Windowed(budget, history[SYSTEM])
        prompt = history[SYSTEM][0]["content"] if history[SYSTEM] else None
        agent = Agent(
            model=model,
            messages=history[MESSAGES],
            system_prompt=prompt,
            context_manager=manager,
            callback_handler=None,
        )
        agent()
        if model.accepted is None:
            raise ContextWindowOverflowException("never accepted")
        return history[SYSTEM], model.accepted

    return Fitting(read=read, fit=fit, write=write, failures=(*FAILURES, ContextWindowOverflowException))


STRATEGIES = {"auto": _way("auto"), "presets": _way(PRESETS)}
