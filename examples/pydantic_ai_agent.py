"""A pydantic-ai agent that can work past its context window."""

from pathlib import Path

from pydantic_ai import Agent

from everlong.adapters.pydantic_ai import EverlongCapability


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


agent = Agent("openai-chat:gpt-4o", tools=[read_file], capabilities=[EverlongCapability("agent.db")])
print(agent.run_sync(input("> ")).output)
