"""Google's Agent Development Kit: an agent with a function tool in one session, on Gemini's API."""

import asyncio
import os
from importlib.metadata import version
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

from everlong.lab.adapters.drivers.job import Job, main, read_file

#: The share of the window at which ADK's own compaction begins, and the number of events that it keeps unchanged.
THRESHOLD, RETAINED = 0.6, 6


def _app(job: Job) -> App:
    model = Gemini(model=job.model, base_url=job.address)
    agent = LlmAgent(name="clerk", model=model, instruction="You are a careful clerk.", tools=[read_file])
    plugins: list[Any] = []
    compaction = None
    if job.how == "everlong":
        from everlong.adapters.google_adk import EverlongPlugin  # noqa: PLC0415 - only where it is measured

        plugins = [EverlongPlugin(job.store, window=job.window)]
    elif job.how == "own":
        tokens = int((job.window or 0) * THRESHOLD)
        compaction = EventsCompactionConfig(token_threshold=tokens, event_retention_size=RETAINED)
    return App(name="desk", root_agent=agent, plugins=plugins, events_compaction_config=compaction)


async def _talk(job: Job) -> None:
    runner = InMemoryRunner(app=_app(job))
    session = await runner.session_service.create_session(app_name="desk", user_id="ann")
    config = RunConfig(streaming_mode=StreamingMode.SSE if job.stream else StreamingMode.NONE)
    for prompt in job.prompts:
        said = ""
        message = Content(role="user", parts=[Part(text=prompt)])
        async for event in runner.run_async(
            user_id="ann", session_id=session.id, new_message=message, run_config=config
        ):
            if event.is_final_response() and event.content and not event.partial:
                said = "".join(part.text or "" for part in event.content.parts or ())
        job.answers.append(said)


def run(job: Job) -> None:
    """Do the job."""
    os.environ["GOOGLE_API_KEY"] = "key"
    asyncio.run(_talk(job))


if __name__ == "__main__":
    main(run, version("google-adk"))
