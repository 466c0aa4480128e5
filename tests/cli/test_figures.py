"""Figures in what commands print: one style in every language, 12,345."""

import re

import pytest

from tests.cli.running import everlong

COMMANDS = {
    "count": ("count", "--sample"),
    "fit": ("fit", "--sample", "--budget", "16000"),
    "inspect": ("inspect", "--sample", "--budget", "16000"),
    "a page of inspect": ("inspect", "--sample", "--budget", "16000", "--html", "-"),
    "models": ("models", "claude-opus-4-5"),
    "a list of models": ("models", "--find", "claude opus 4"),
    "demo": ("demo",),
}
#: 12 345 with any space, and 12345 where it is no year, id, date, address or length of a style sheet.
SPACED = re.compile(r"(?<![\w.,:/#-])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\d\w])")
BARE = re.compile(r"(?<![\w.,:/#%-])\d{5,}(?![\w.:/-])")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", COMMANDS)
def test_figures_have_commas(name: str, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a narrow table breaks the names of models
    ran = everlong(*COMMANDS[name], "--lang", language)
    assert ran.code == 0, ran.err
    said = re.sub(r"<(style|script|svg|pre)\b.*?</\1>", "", ran.out, flags=re.DOTALL)
    assert re.search(r"\b\d{1,3},\d{3}\b", said)
    assert SPACED.findall(said) == []
    assert "page" in name or BARE.findall(said) == []  # a page quotes messages
