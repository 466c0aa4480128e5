"""What counts as found, and what as a changed line."""

from pathlib import Path

from everlong.lab.data import agents
from everlong.lab.secrets.corpus import Sample
from everlong.lab.secrets.kind import Made
from everlong.lab.secrets.measure import alarms_in, find_secrets, is_left_over, lines_written, texts_in, texts_of
from tests.lab.folders import DATA

SAMPLE = Sample("x", "bare", Made("key abcdefghij, rest kl", ("abcdefghij", "kl")))


def test_a_secret_is_found_if_no_eight_of_its_characters_are_left() -> None:
    assert is_left_over(SAMPLE, SAMPLE.made.text)
    assert is_left_over(SAMPLE, "key [redacted]cdefghij, rest kl")
    assert not is_left_over(SAMPLE, "key [redacted]defghij, rest kl")


def test_whoever_hides_nothing_finds_nothing_and_whoever_hides_all_finds_all() -> None:
    assert not any(row.found for row in find_secrets("all", 3, hide=str))
    assert all(row.found == row.total and not row.missed for row in find_secrets("all", 3, hide=lambda _: ""))
    assert {row.held_out for row in find_secrets("development", 1)} == {False}


def test_changed_lines_are_counted_also_where_lines_went() -> None:
    assert alarms_in("a", ["1\n2\n3"], lambda text: text.replace("2", "x")).changed == 1
    assert alarms_in("a", ["1\n2\n3"], lambda _: "1\n3").changed == 1
    one = alarms_in("a", ["1\n2\n3", ""], str)
    assert (one.lines, one.changed, one.characters) == (4, 0, 5)


def test_texts_of_conversations_and_of_files(tmp_path: Path) -> None:
    assert any("{" in text for text in texts_of(agents(DATA, "office")))
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    (tmp_path / "b.bin").write_bytes(b"\0")
    assert list(texts_in(tmp_path)) == list(texts_in(tmp_path / "a.txt")) == ["a"]


def test_secrets_of_every_kind_are_hidden() -> None:
    found = list(find_secrets("all", 20))
    for held_out in (False, True):
        rows = [row for row in found if row.held_out is held_out]
        assert sum(row.found for row in rows) >= 0.995 * sum(row.total for row in rows), [r for r in rows if r.missed]


def test_ordinary_lines_stay() -> None:
    alarms = alarms_in("ours", lines_written(5))
    assert alarms.changed <= 0.005 * alarms.lines
