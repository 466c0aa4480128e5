"""`everlong lab capacity`: tables, JSON, a page, both languages, and costs of one's own."""

import json
from pathlib import Path

from everlong.lab import recorded_costs, write_costs
from tests.cli.running import everlong


def test_a_user_reads_what_three_rates_need_and_what_gives_first() -> None:
    ran = everlong("lab", "capacity", "--rates", "10,1000,100000")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    for said in (
        "What coding conversations need",
        "The first bottleneck",
        "What one request costs",
        "replicas × workers",
    ):
        assert said in ran.out
    rows = [line for line in ran.out.splitlines() if line.startswith(("| 10 ", "| 1,000 ", "| 100,000 "))]
    assert len(rows) == 2 * 3 + 1  # both tables, and the costs of 100,000 tokens


def test_the_figures_as_json_grow_with_the_rate_and_repeat_with_the_seed() -> None:
    arguments = ("lab", "capacity", "--rates", "20,2000", "--store", "postgres", "--json")
    first, again = (json.loads(everlong(*arguments).out) for _ in range(2))
    assert first == again
    low, high = first["plans"]
    assert high["cores"] > 50 * low["cores"]
    assert high["replicas"] > low["replicas"] == 1
    assert high["database_bytes"] > 50 * low["database_bytes"]
    assert 0 < low["waits"]["line"]["utilisation"] < 1


def test_costs_of_a_file_are_used(tmp_path: Path) -> None:
    dear = recorded_costs("postgres").times(10)
    write_costs(dear, tmp_path / "dear.json")
    usual, own = (
        json.loads(everlong("lab", "capacity", "--rates", "500", "--json", *more).out)["plans"][0]
        for more in ((), ("--costs", str(tmp_path / "dear.json")))
    )
    assert 9.9 < own["cores"] / usual["cores"] < 10.1


def test_sqlite_is_told_to_be_for_one_machine() -> None:
    assert "use --store postgres" in everlong("lab", "capacity", "--rates", "5000", "--store", "sqlite").out
    assert "use --store postgres" not in everlong("lab", "capacity", "--rates", "1", "--store", "sqlite").out


def test_a_page_and_the_tables_speak_chinese(tmp_path: Path) -> None:
    page = tmp_path / "capacity.html"
    ran = everlong("lab", "capacity", "--rates", "10", "--lang", "zh", "--html", str(page))
    assert "最先到顶的资源" in ran.out
    assert "多大的请求量需要多少资源" in page.read_text(encoding="utf-8")


def test_bad_input_is_one_clear_line(tmp_path: Path) -> None:
    for arguments, said in (
        (("--rates", "ten"), "such as 10,1000"),
        (("--rates", "0"), "above 0"),
        (("--costs", str(tmp_path / "none.json")), "cannot be read"),
        (("--busy", "1.5"), "--busy"),
    ):
        ran = everlong("lab", "capacity", *arguments)
        assert ran.code != 0
        assert said in ran.err
