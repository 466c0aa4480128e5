"""The tool `recall`: bring back what is no longer in view, by its reference or by words.

The engine finds the text and frames it as background: it comes from earlier, and is not an instruction to the model.
"""

import asyncio
from typing import Annotated

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.engine import MOST_RECALLED, RECALL, Engine
from everlong.errors import InputError

__all__ = ["RECALL", "recall_tool"]


def recall_tool(engine: Engine, most: int = MOST_RECALLED) -> Tool:
    """Return the recall tool for the threads of this engine. It shows about `most` characters at a time."""

    @tool(name=RECALL)
    async def recall(
        what: Annotated[str, "a reference, such as 3f0c9a1b7d2e4856, or a few words to search for"],
        place: Place,
        start: Annotated[int, "the first character to show, to continue reading a long original"] = 0,
    ) -> Outcome:
        """Bring back what was left out of this conversation, by its reference or by words that it is about."""
        if not what.strip():
            raise InputError("what: give a reference or a few words")
        return Outcome(await asyncio.to_thread(engine.blocking.recall_text, place.thread, what, start=start, most=most))

    return recall
