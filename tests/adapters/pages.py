"""The complete example of an adapter's page, run as it is written against a scripted provider."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from everlong.testing import Answer, ScriptedServer, in_turn

PAGES = Path(__file__).parent.parent.parent / "docs" / "adapters"
EXAMPLE = re.compile(r"^## Complete example\n.*?^```py\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
MOST_LINES = 12


def example_of(page: str) -> str:
    """Return the program that a reader copies."""
    found = EXAMPLE.search((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    assert found is not None, page
    return found[1]


def run_example(
    page: str,
    answers: Sequence[Answer],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[str, list[str]]:
    """Run the example; return what it printed, and for each request the names of the tools on offer."""
    code = example_of(page)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(lines) <= MOST_LINES, page
    with ScriptedServer(in_turn(answers)) as server:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, f"{server.address}/v1")
        exec(compile(code, f"{page}.md", "exec"), {"__name__": "__main__"})
    offered = [" ".join(json.loads(tool)["function"]["name"] for tool in asked.tools) for asked in server.requests]
    return capsys.readouterr().out.strip(), offered
