"""What the documents ask of the registry's refresh: weekly, in the background, cached, with a second source."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everlong.llm import RefreshSettings, refresh, refresh_if_due, registry_now
from everlong.llm.registry_refresh import Refreshed
from everlong.windows import bundled, window
from tests.llm.tables import Answers, litellm_table, models_dev_table, never, served

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_CB_3_tables_are_refreshed_weekly_and_cached(tmp_path: Path) -> None:
    answers = Answers(models_dev_table(gpt_99=2_000_000))

    async def start(days: float) -> bool:
        async with served(answers) as sources:
            return await refresh_if_due(tmp_path, NOW + timedelta(days=days), sources=sources) is not None

    started = [asyncio.run(start(days)) for days in (0, 1, 3, 6, 8, 9, 14, 16)]
    assert started == [True, False, False, False, True, False, False, True]
    assert answers.asked == ["models.dev"] * 3
    assert window("gpt-99", registry=registry_now(tmp_path)).context == 2_000_000


def test_CB_3_the_refresh_holds_nobody_up(tmp_path: Path) -> None:
    async def run() -> int:
        answers = Answers(never, never)
        async with served(answers) as sources:
            task = refresh_if_due(tmp_path, NOW, sources=sources)
            await answers.began.wait()
            found = window("gpt-4o", registry=registry_now(tmp_path)).context
            assert not task.done()
            task.cancel()
            return found

    assert asyncio.run(run()) == window("gpt-4o").context


def test_CB_3_offline_nothing_is_asked(tmp_path: Path) -> None:
    async def run() -> list[str]:
        answers = Answers(models_dev_table())
        settings = RefreshSettings.from_environment({"EVERLONG_OFFLINE": "1"})
        async with served(answers) as sources:
            assert await refresh_if_due(tmp_path, NOW, settings=settings, sources=sources) is None
        return answers.asked

    assert asyncio.run(run()) == []
    assert registry_now(tmp_path) is bundled()


def test_CB_8_a_second_source_answers_when_the_first_is_away(tmp_path: Path) -> None:
    async def run() -> Refreshed:
        async with served(Answers(503, litellm_table(gpt_98=500_000))) as sources:
            return await refresh(None, tmp_path, now=NOW, sources=sources)

    done = asyncio.run(run())
    assert done.table == "litellm"
    assert done.said.endswith("as of 2027-01-04; models.dev: status 503")
    found = window("gpt-98", registry=registry_now(tmp_path))
    assert (found.context, found.table, found.date) == (500_000, "litellm", "2027-01-04")
