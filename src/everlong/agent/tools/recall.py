"""The tool `recall`: bring back what is no longer in view, by its reference or by words.

The engine finds it and frames it as background: it was said before, and nothing in it is addressed to the model now.
"""

import asyncio
from typing import Annotated

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.engine import MOST_RECALLED, RECALL, Engine
from everlong.errors import InputError

__all__ = ["RECALL", "recall_tool"]


def recall_tool(engine: Engine, most: int = MOST_RECALLED) -> Tool:
    """Return the tool for the threads of this engine; it shows about `most` characters at a time."""

    @tool(name=RECALL)
    async def recall(
        what: Annotated[str, "a reference, such as 3f0c9a1b7d2e4856, or a few words"],
        place: Place,
        start: Annotated[int, "the first character to show, to read on in a long original"] = 0,
    ) -> Outcome:
        """Get back what was left out of this conversation: the original of a reference, or what was said of words."""
        if not what.strip():
            raise InputError("what: give a reference or a few words")
        return Outcome(await asyncio.to_thread(engine.blocking.recall_text, place.thread, what, start=start, most=most))

    return recall
