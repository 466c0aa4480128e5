"""Results of runs on the pages: written by the command, kept until a client is run again, one page a client."""

import re
from pathlib import Path

import pytest

from everlong.errors import EverlongError
from everlong.lab.clients.results import CLIENT_PAGES, run_table, write_runs
from everlong.lab.clients.table import CLIENTS
from everlong.lab.clients.verdict import Verdict, left_out
from everlong.lab.environments import Environment
from everlong.lab.pages import CLOSE
from tests.cli.running import everlong

PAGES = Path(__file__).parents[3] / "docs" / "clients"
HEADINGS = ["What to set", "With `everlong wrap`", "What was run", "What to expect"]
OPEN, EMPTY = CLIENT_PAGES.open, f"# Title\n\nBefore.\n\n{CLIENT_PAGES.open}\n{CLOSE}\n\nAfter.\n"
RUN = Verdict(
    client="aider",
    mode="chat stream",
    version="0.86.2",
    turns=36,
    requests=36,
    wanted=105_812,
    largest=27_214,
    window=32_000,
    compactions=10,
    breaks=10,
    summaries=10,
    task=36,
    tasked=36,
)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for name in ("README", *CLIENTS):
        (tmp_path / f"{name}.md").write_text(EMPTY, encoding="utf-8")
    return tmp_path


def rows(page: Path) -> list[list[str]]:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def of(client: str, page: Path) -> list[list[str]]:
    return [row for row in rows(page) if row[0].startswith(f"[{client}]")]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_a_page_with_the_same_headings_and_its_runs(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert of(name, PAGES / "README.md"), "run everlong lab clients --write docs/clients"
    assert [row[1:] for row in of(name, PAGES / "README.md")] == rows(page)


def test_a_run_stands_on_the_page_of_its_client_and_among_all_clients(pages: Path) -> None:
    write_runs(pages, [RUN], "2026-11-16")
    figures = ["36", "36", "105 812", "27 214", "32 000", "0", "10", "10", "10", "36/36"]
    row = ["0.86.2", "chat stream", *figures, "yes", "2026-11-16"]
    assert rows(pages / "aider.md") == [row]
    assert of("aider", pages / "README.md") == [["[aider](aider.md)", *row]]
    text = (pages / "aider.md").read_text(encoding="utf-8")
    assert text.startswith("# Title\n\nBefore.\n")
    assert text.endswith(f"{CLOSE}\n\nAfter.\n")


def test_what_was_never_run_is_said_to_be_so(pages: Path) -> None:
    write_runs(pages, [RUN], "2026-11-16")
    row = CLIENTS["smolagents"]
    assert [(cells[1], cells[-2]) for cells in rows(pages / "smolagents.md")] == [
        (mode, "not run") for mode in row.modes
    ]


def test_a_row_that_was_not_run_again_keeps_its_day_and_its_faults(pages: Path) -> None:
    slow = Verdict(client="codex", mode="responses stream", version="1", window=24_000, faults=("2 of 6 tasks: late",))
    write_runs(pages, [RUN, slow], "2026-11-15")
    write_runs(pages, [RUN], "2026-11-16")
    assert [cells[-1] for cells in of("aider", pages / "README.md")] == ["2026-11-16"]
    assert [cells[-2:] for cells in of("codex", pages / "README.md")] == [["no", "2026-11-15"]]
    for page in ("codex.md", "README.md"):
        assert "- codex responses stream, 24000: 2 of 6 tasks: late\n" in (pages / page).read_text(encoding="utf-8")
    write_runs(pages, [RUN], "2026-11-16")
    write_runs(pages, [Verdict(client="codex", mode="responses stream", version="2", window=24_000)], "2026-11-17")
    assert [cells[1] for cells in of("codex", pages / "README.md")] == ["2"]
    assert "late" not in (pages / "README.md").read_text(encoding="utf-8")


def test_a_client_that_cannot_be_had_is_named_with_its_reason_unless_it_was_run_before(pages: Path) -> None:
    write_runs(pages, [RUN, left_out("codex", "npm cannot install it here: no")], "2026-11-15")
    assert [cells[-2] for cells in of("codex", pages / "README.md")] == ["left out"]
    assert "- codex –, –: npm cannot install it here: no\n" in (pages / "codex.md").read_text(encoding="utf-8")
    write_runs(pages, [left_out("aider", "pip cannot install it here")], "2026-11-16")
    assert [cells[-2:] for cells in of("aider", pages / "README.md")] == [["yes", "2026-11-15"]]
    assert [cells[-2:] for cells in of("codex", pages / "README.md")] == [["left out", "2026-11-15"]]


@pytest.mark.parametrize(
    ("text", "told"), [(None, "there is no page"), ("# Title\n", "has no place for runs")], ids=["page", "marks"]
)
def test_a_page_that_is_not_ready_is_named_and_nothing_is_written(pages: Path, text: str | None, told: str) -> None:
    page = pages / "openclaw.md"
    page.unlink() if text is None else page.write_text(text, encoding="utf-8")
    with pytest.raises(EverlongError, match=f"{told}.*") as raised:
        write_runs(pages, [RUN], "2026-11-16")
    assert str(page) in str(raised.value)
    assert (pages / "README.md").read_text(encoding="utf-8") == EMPTY


def test_the_table_in_the_terminal_has_the_same_columns_without_the_day() -> None:
    shown = str(run_table("Clients", [RUN, left_out("codex", "no npm")]))
    assert shown.startswith("## Clients\n\n| client")
    assert "| aider" in shown
    assert "- codex –, –: no npm" in shown
    assert "run" not in shown.splitlines()[2].split()


def test_the_command_writes_what_it_ran(pages: Path, tmp_path: Path) -> None:
    home = CLIENTS["openai"].home
    assert isinstance(home, Environment)
    told = everlong("lab", "clients", "openai", "--direct", "--write", str(pages))
    assert (told.code, "leave out --direct" in told.err) == (2, True)
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / home.name).write_text("a file where the folder should be", encoding="utf-8")
    ran = everlong("lab", "clients", "openai", "--write", str(pages), "--environments", str(tmp_path / "lab"))
    assert ran.code == 0
    assert [cells[-2] for cells in of("openai", pages / "README.md")] == ["left out"]
    (pages / "openai.md").unlink()
    told = everlong("lab", "clients", "openai", "--write", str(pages), "--environments", str(tmp_path / "lab"))
    assert (told.code, "openai: left out" in told.err) == (1, False), "nothing is run if a page is missing"
