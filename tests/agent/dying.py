"""An agent in a program of its own that is killed in the middle of a call; run by the tests."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from everlong.agent.agent import Agent
from everlong.agent.config import AgentConfig
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.core import JsonObject
from everlong.engine import Engine
from everlong.llm import Answer, ScriptedModel
from everlong.store import open_store


async def live(store: str, log: Path) -> None:
    """A turn of three calls at once; when the first is kept, the third kills the program."""

    async def act(arguments: JsonObject, place: Place) -> Outcome:
        number = int(str(arguments["n"]))
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        while number == 2:
            if any("done 0" in result.text for row in threads.read("t") for result in row.entry.results):  # type: ignore[union-attr]
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(0)
        if number == 1:
            await asyncio.Event().wait()
        return Outcome(f"done {number}")

    with open_store(store) as threads:
        tool = Tool(name="act", description="Act.", parameters='{"type": "object"}', run=act)
        model = ScriptedModel(lambda _: Answer(calls=tuple(("act", f'{{"n": {n}}}') for n in range(3))))
        agent = Agent(Engine(threads), model, [tool], AgentConfig(language="en"))
        ended = [event async for event in agent.turn("t", "Go")]
        raise AssertionError(f"it was to be killed before the turn ended: {ended}")


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], Path(sys.argv[2])))
