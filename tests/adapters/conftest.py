"""An adapter is tested where its framework is installed; most are only in environments of their own.

`make adapters` runs these tests there.
"""

from importlib.util import find_spec

#: The packages of frameworks that are not among those of the tests.
PACKAGES = {
    "autogen": "autogen_core",
    "crewai": "crewai",
    "haystack": "haystack",
    "llama_index": "llama_index",
    "smolagents": "smolagents",
}
ABSENT = [name for name, package in PACKAGES.items() if find_spec(package) is None]
collect_ignore = [f"test_{name}.py" for name in ABSENT]
