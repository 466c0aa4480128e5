"""Every promise of the threat model names the tests that prove it, and those tests exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "gateway" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROW = re.compile(r"^\| (?!---|promise)(.+?) \| (.+?) \|$", re.MULTILINE)
ACTORS = ("local user", "another site", "another key", "hostile model", "hostile tool result", "hostile upstream")


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED.findall(PAGE))))
def test_a_named_test_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), path
    assert name in functions_in(path), f"{path} has no {name}"


def test_every_promise_has_a_test() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) >= 40
    for promise, proof in rows:
        assert NAMED.search(proof), f"no test for: {promise}"


@pytest.mark.parametrize("actor", [*ACTORS, "hostile file"])
def test_every_actor_has_a_section(actor: str) -> None:
    assert re.search(rf"^## .*{actor}", PAGE, re.IGNORECASE | re.MULTILINE), actor
