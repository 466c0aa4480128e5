"""A language of the app is a table of the page and a row of the server; both have the same languages."""

from everlong.web.build import PAGE
from everlong.web.words import NOT_BUILT

WORDS = PAGE / "src" / "words"
NOT_TABLES = {"index", "language.svelte", "tables", "tables.test"}


def test_page_and_server_know_the_same_languages() -> None:
    tables = {path.stem for path in WORDS.glob("*.ts")} - NOT_TABLES
    assert tables == set(NOT_BUILT)
    row = next(line for line in (WORDS / "tables.ts").read_text(encoding="utf-8").splitlines() if "TABLES" in line)
    assert set(row.partition("{")[2].partition("}")[0].replace(" ", "").split(",")) == tables


def test_no_code_of_the_page_asks_which_language_it_is() -> None:
    for path in (PAGE / "src").rglob("*"):
        if path.suffix in (".ts", ".svelte") and path.parent != WORDS:
            text = path.read_text(encoding="utf-8")
            assert not [name for name in NOT_BUILT if f'"{name}"' in text], path.name
