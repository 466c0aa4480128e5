"""`everlong keys` as an operator types it: a key is printed once, limits are set, lists and sums are shown."""

import json
import re
from pathlib import Path

import pytest

from everlong.gateway import Ledger, hashed
from everlong.gateway.keys.spend import Spend
from everlong.store import open_store
from tests.cli.running import everlong


class Operator:
    """Types commands in a folder, at the store of a gateway there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.url = f"sqlite:///{folder / 'gateway.db'}"
        for name, value in {"EVERLONG_STORE": self.url, "COLUMNS": "200", "LANG": "C"}.items():
            monkeypatch.setenv(name, value)

    def types(self, *words: str) -> tuple[str, str]:
        """Return what is printed, and what is said beside it."""
        ran = everlong("keys", *words, folder=self._folder)
        assert (ran.code != 0) == (not ran.out)
        return ran.out, ran.err


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    return Operator(tmp_path, monkeypatch)


def test_a_key_is_printed_once_and_only_its_hash_is_kept(operator: Operator, tmp_path: Path) -> None:
    out, err = operator.types("create", "team-a", "--requests-per-minute", "60", "--dollars-per-day", "2.5")
    key = out.strip()
    assert re.fullmatch(r"el-[A-Za-z0-9_-]{40}", key)
    assert "shown only once" in err
    listed = operator.types("list")[0]
    assert "60 requests/min, $2.5/day" in listed
    assert "never" in listed
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("gateway.db*"))
    assert key.encode() not in stored
    assert hashed(key).encode() in stored


def test_limits_are_set_and_lifted_a_key_is_replaced_and_revoked(operator: Operator) -> None:
    first = json.loads(operator.types("create", "team", "--at-once", "4", "--json")[0])
    out = operator.types("set", "team", "--at-once", "none", "--tokens-per-day", "1000000", "--mode", "trim", "--json")[
        0
    ]
    assert (json.loads(out)["limits"], json.loads(out)["mode"]) == ({"tokens_per_day": 1_000_000}, "trim")
    assert operator.types("rotate", "team")[0].strip() != first["key"]
    assert operator.types("show", "team")[0].count("1,000,000 tokens/day") == 1
    assert "is revoked" in operator.types("revoke", "team")[0]
    assert "team (revoked)" in operator.types("list")[0]
    assert "is revoked: create a new one" in operator.types("set", "team", "--at-once", "2")[1]
    assert operator.types("create", "team")[0].startswith("el-")


def test_what_was_spent_is_shown_by_key_and_by_day(operator: Operator) -> None:
    operator.types("create", "team")
    with open_store(operator.url) as store:
        ledger = Ledger(store)
        ledger.add("team", Spend(requests=3, prompt=12_000, output=345, dollars=0.125, aside=0.025, unpriced=1))
        ledger.add("gone", Spend(requests=1, prompt=10))
        ledger.flush()
    shown = operator.types("spend", "--days", "2")[0]
    assert re.search(r"team +3 +12,345 +0\.1250", shown)
    assert re.search(r"gone +1 +10 +0\.00", shown)
    assert "0.0250 dollars of it for summaries and titles" in shown
    assert "1 call without a known price" in shown
    one = operator.types("spend", "team", "--lang", "zh")[0]
    assert re.search(r"20\d\d-\d\d-\d\d +3 +12,345 +0\.1250", one)
    assert "价格未知" in one
    assert [row["name"] for row in json.loads(operator.types("spend", "--json")[0])["keys"]] == ["gone", "team"]


WRONG = [
    (("create", "team"), "key 'team' already exists"),
    (("create", "b", "--at-once", "few"), "at_once must be an integer"),
    (("create", "b", "--dollars-per-day", "-1"), "dollars_per_day must be more than 0"),
    (("set", "team"), "nothing to change"),
    (("revoke", "ghost"), "there is no key 'ghost' in this store"),
    (("show", "ghost"), "there is no key 'ghost'"),
    (("revoke", "old"), "is in the configuration file"),
    (("list", "--store", "sqlite:///nowhere.db"), "`everlong keys create NAME` creates one"),
]


def test_what_is_wrong_is_one_line(operator: Operator, tmp_path: Path) -> None:
    (tmp_path / "everlong.toml").write_text(f'[[keys]]\nname = "old"\nhash = "{"ab" * 32}"\n')
    operator.types("create", "team")
    assert "old (in the file)" in operator.types("list")[0]
    for words, line in WRONG:
        out, err = operator.types(*words)
        assert (out, err.count("\n"), line in err) == ("", 1, True), (words, err)
