"""A program that summarises a thread in a SQLite file and kills itself at a moment that is counted, not timed.

    python -m tests.engine.dying FILE MOMENT

Moments are counted around every write to the store, when the author is asked, and at each piece of its answer. Without
a kill it prints how many there were.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from everlong.engine.contracts import Call, Reply, Request
from everlong.engine.engine import Engine
from everlong.engine.summaries.author import Author
from everlong.engine.summaries.schedule import Summaries
from everlong.llm import Answer, ScriptedModel
from everlong.store import open_store
from tests.engine.authors import HONEST

__all__ = ["CALL", "Dying", "Moments"]

CALL = Call(model="gpt-4o", max_tokens=500)


class Moments:
    """Counts; at the one that was chosen the process is gone, as by kill -9."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    def pass_one(self) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    """A store whose writes are moments, before and after."""

    def __init__(self, store: Any, moments: Moments) -> None:
        self._store = store
        self._moments = moments

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("append", "record"):
            return found

        def written(*given: Any, **named: Any) -> Any:
            self._moments.pass_one()
            done = found(*given, **named)
            self._moments.pass_one()
            return done

        return written


class DyingModel(ScriptedModel):
    """An author whose pieces are moments."""

    moments: Moments

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        async with aclosing(super().stream(request)) as replies:
            async for reply in replies:
                self.moments.pass_one()
                yield reply


async def main(file: str, last: int) -> None:
    moments = Moments(last)
    with open_store(f"sqlite:///{file}") as store:
        engine = Engine(Dying(store, moments))  # type: ignore[arg-type]
        model = DyingModel(lambda _: Answer(text=HONEST))
        model.moments = moments
        summaries = Summaries(engine, [Author(model=model, name="gpt-4o-mini")], own_model=False)
        await summaries.compact("talk", CALL, model)
    sys.stdout.write(str(moments.count))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
