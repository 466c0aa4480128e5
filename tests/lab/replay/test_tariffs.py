"""What tokens cost: the tables, models of the registry, files of one's own."""

import json
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.lab.replay.caches import Rules
from everlong.lab.replay.tariffs import TARIFFS, tariff_from, tariff_of
from everlong.wire import Usage

#: A million tokens of each kind: plain, read, written, said -> dollars.
COSTS = {
    "anthropic": (3.0, 0.3, 3.75, 15.0),
    "anthropic-1h": (3.0, 0.3, 6.0, 15.0),
    "openai": (1.25, 0.125, 1.25, 10.0),
    "openai-half": (2.5, 1.25, 2.5, 10.0),
    "deepseek": (0.28, 0.028, 0.28, 0.42),
    "gemini": (1.25, 0.125, 1.25, 10.0),
    "uncached": (3.0, 3.0, 3.0, 15.0),
}
M = 1_000_000


@pytest.mark.parametrize("name", TARIFFS)
def test_every_table_has_its_price_for_each_kind_of_token(name: str) -> None:
    tariff = tariff_from(name)
    usages = (Usage(prompt=M), Usage(prompt=M, cached=M), Usage(prompt=M, cache_written=M), Usage(output=M))
    assert tuple(map(tariff.dollars, usages)) == pytest.approx(COSTS[name])
    together = Usage(prompt=3 * M, cached=M, cache_written=M, output=M)
    assert tariff.dollars(together) == pytest.approx(sum(COSTS[name]))


FAMILIES = {
    "claude-sonnet-4-5": ("marked", 1_024, 1),
    "anthropic/claude-haiku-4-5": ("marked", 4_096, 1),
    "claude-opus-4-5": ("marked", 4_096, 1),
    "claude-3-5-haiku-20241022": ("marked", 2_048, 1),
    "gpt-4o": ("automatic", 1_024, 128),
    "o3": ("automatic", 1_024, 128),
    "gemini-2.5-pro": ("automatic", 2_048, 1),
    "deepseek-chat": ("automatic", 64, 64),
    "grok-4": ("automatic", 1_024, 128),  # no family of ours, but the registry has a price for what is read
    "mistral-large-latest": ("none", 1_024, 1),
}


@pytest.mark.parametrize(("model", "rules"), FAMILIES.items(), ids=FAMILIES)
def test_a_model_has_the_rules_of_its_family(model: str, rules: tuple[str, int, int]) -> None:
    tariff = tariff_of(model)
    assert (tariff.rules.kind, tariff.rules.least, tariff.rules.step) == rules
    assert tariff.name == model
    assert tariff.prices.input is not None


def test_a_model_without_prices_is_an_error_that_names_the_tables() -> None:
    with pytest.raises(InputError, match=r"no prices are known for 'nobodys-model'.*anthropic, "):
        tariff_of("nobodys-model")


FILES: dict[str, tuple[dict[str, object], Rules]] = {
    "prices alone": ({"input": 1, "output": 2}, Rules(kind="none", least=1_024, step=128)),
    "with a read price": (
        {"input": 1, "output": 2, "cache_read": 0.1},
        Rules(kind="automatic", least=1_024, step=128),
    ),
    "with a write price": (
        {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.25},
        Rules(kind="marked", least=1_024),
    ),
    "with rules": (
        {"input": 1, "output": 2, "cache_read": 0, "kind": "automatic", "least": 64, "step": 64, "seconds": 0.5},
        Rules(kind="automatic", least=64, step=64, seconds=0.5),
    ),
    "marked and one hour": (
        {"input": 3, "output": 15, "kind": "marked", "seconds": 3600},
        Rules(kind="marked", least=1_024, seconds=3_600),
    ),
}


@pytest.mark.parametrize(("said", "rules"), FILES.values(), ids=FILES)
def test_a_file_of_ones_own(said: dict[str, object], rules: Rules, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(said))
    tariff = tariff_from(str(path))
    assert tariff.name == "mine"
    assert tariff.rules == rules
    assert tariff.dollars(Usage(prompt=M, output=M)) == pytest.approx(
        float(str(said["input"])) + float(str(said["output"]))
    )


WRONG = {
    "no JSON": ("{", "mine.json: "),
    "a list": ("[3, 15]", "prices must be a JSON object"),
    "no output": ('{"input": 3}', "input and output are missing"),
    "another field": ('{"input": 3, "output": 15, "cached": 1}', "'cached' is not a price; the fields are input, "),
    "a negative price": ('{"input": -3, "output": 15}', "input must be a price"),
    "a price in words": ('{"input": "3", "output": 15}', "input must be a price"),
    "no number": ('{"input": NaN, "output": 15}', "input must be a price"),
    "no price at all": ('{"input": 3, "output": null}', "output must be a price"),
    "true": ('{"input": true, "output": 15}', "input must be a price"),
    "another kind": (
        '{"input": 3, "output": 15, "kind": "some"}',
        "kind must be automatic, marked or none, not 'some'",
    ),
    "no life": ('{"input": 3, "output": 15, "seconds": 0}', "seconds must be a number above 0"),
    "for ever": ('{"input": 3, "output": 15, "seconds": Infinity}', "seconds must be a number above 0"),
    "half a token": ('{"input": 3, "output": 15, "step": 0.5}', "step must be a whole number of tokens"),
}


@pytest.mark.parametrize(("said", "told"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_wrong_is_told_in_one_line(said: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(said)
    with pytest.raises(InputError) as error:
        tariff_from(str(path))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_that_is_no_file_is_an_error_that_names_the_tables() -> None:
    with pytest.raises(InputError, match="unknown prices 'antropic': use anthropic, "):
        tariff_from("antropic")
