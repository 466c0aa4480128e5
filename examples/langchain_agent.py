"""A LangChain agent that can work past its context window."""

from pathlib import Path

from langchain.agents import create_agent

from everlong.adapters.langchain import EverlongMiddleware


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


agent = create_agent("openai:gpt-4o", [read_file], middleware=[EverlongMiddleware("agent.db")])
state = agent.invoke({"messages": [{"role": "user", "content": input("> ")}]})
print(state["messages"][-1].text)
