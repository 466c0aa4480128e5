"""An adapter is tested where its framework is installed; most are only in environments of their own.

There: `python -m pytest -W default tests/adapters tests/wire/libraries`, with the source in PYTHONPATH.
"""

from importlib.util import find_spec

#: The package of each framework, by the adapter's module.
PACKAGES = {
    "agent_framework": "agent_framework",
    "autogen": "autogen_core",
    "crewai": "crewai",
    "google_adk": "google.adk",
    "haystack": "haystack",
    "langchain": "langchain",
    "litellm": "litellm",
    "llama_index": "llama_index",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not."""
    parent = package.rpartition(".")[0]
    return (not parent or find_spec(parent) is not None) and find_spec(package) is not None


ABSENT = [name for name, package in PACKAGES.items() if not is_installed(package)]
collect_ignore = [f"test_{name}.py" for name in ABSENT]
