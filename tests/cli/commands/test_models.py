"""`everlong models`: how old the tables are, and fetching newer ones where that is allowed."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from everlong.llm.registry_files import LastTry, write_registry, write_try
from everlong.windows import Registry
from tests.windows.tables import row


def models(cache: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    settings = {**os.environ, "EVERLONG_CACHE": str(cache), "COLUMNS": "200", **environment}
    command = [sys.executable, "-m", "everlong", "models", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=settings, check=False)


def test_the_age_of_the_tables_is_shown(tmp_path: Path) -> None:
    shown = models(tmp_path, "gpt-4o").stdout
    assert "Tables: models.dev of 20" in shown
    assert "never refreshed (--refresh downloads newer ones)" in shown


def test_what_was_fetched_answers_and_is_dated(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    day = now.date().isoformat()
    write_registry(tmp_path, Registry((row("openai", "gpt-99", 2_000_000, date=day),)))
    write_try(tmp_path, LastTry(now))
    shown = models(tmp_path, "gpt-99").stdout
    assert f"2,000,000 (registry, models.dev of {day})" in shown
    assert f"models.dev of {day} (" in shown
    assert f"refreshed on {day}" in shown


def test_offline_nothing_is_fetched(tmp_path: Path) -> None:
    ran = models(tmp_path, "--refresh", EVERLONG_OFFLINE="1")
    assert (ran.returncode, ran.stderr.strip()) == (
        1,
        "everlong: EVERLONG_OFFLINE is set: unset it to download the tables",
    )
    assert not list(tmp_path.iterdir())


def test_a_refresh_without_a_network_is_one_clear_line(tmp_path: Path) -> None:
    ran = models(tmp_path, "--refresh", https_proxy="http://127.0.0.1:1", HTTPS_PROXY="http://127.0.0.1:1")
    assert ran.returncode == 1
    assert ran.stderr.startswith("everlong: the model registry was not refreshed (models.dev: Cannot connect to host")
    assert ran.stderr.count("\n") == 1
    assert "failed (--refresh tries again)" in models(tmp_path, "gpt-4o").stdout
