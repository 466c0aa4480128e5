"""An adapter is tested where its framework is installed; most are only in environments of their own.

There: `python -m pytest -W default tests/adapters tests/wire/libraries`, with the source in PYTHONPATH.
"""

import gc
import re
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

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
#: Packages of theirs under other names.
BESIDE = ("google.genai", "langchain_core", "langgraph", "openai", "anthropic")
IMPORTED = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)


def is_installed(package: str) -> bool:
    """Whether a package could be imported."""
    parent = package.rpartition(".")[0]
    return (not parent or find_spec(parent) is not None) and find_spec(package) is not None


ABSENT = {name: package for name, package in PACKAGES.items() if not is_installed(package)}


def without_framework(folder: Path) -> list[str]:
    """The tests in a folder that import a framework which is not installed, or its adapter."""
    left = [*ABSENT.values(), *(f"everlong.adapters.{name}" for name in ABSENT)]
    left += [package for package in BESIDE if not is_installed(package)]
    found = []
    for path in folder.glob("test_*.py"):
        imported = [f"{name}." for name in IMPORTED.findall(path.read_text(encoding="utf-8"))]
        if any(name.startswith(f"{package}.") for name in imported for package in left):
            found.append(path.name)
    return found


collect_ignore = without_framework(Path(__file__).parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(autouse=True, scope="module")
def left_behind() -> Iterator[None]:
    """Collect the connections that clients of frameworks leave open, before another test is blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
