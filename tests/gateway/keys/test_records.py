"""Keys in a store, and what a process knows of them: also while the store is away, and of a newer version."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from everlong.core import JsonText
from everlong.errors import InputError, Refused, StoreError
from everlong.gateway.config import KeyTable, Limits
from everlong.gateway.keys.records import KEYS, KeyRecords, KeyRing, hashed, scope_of
from everlong.store import MemoryThreads
from tests.gateway.keys.made import clients_of


class Away(MemoryThreads):
    """A store that may be away."""

    away = False

    def facts(self, kind: str) -> dict[str, JsonText]:
        if self.away:
            raise StoreError("no answer")
        return super().facts(kind)


def sent(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {key}".encode())]


def test_a_store_that_is_away_locks_nobody_out_and_lets_nobody_in() -> None:
    store = Away()
    records = KeyRecords(store)
    _, key = records.create("team", {"requests_per_minute": 5})
    ring = KeyRing((), records)
    ring.refresh()
    store.away = True
    records.revoke("team")
    ring.refresh()
    found = ring.find(bytes.fromhex(hashed(key)))
    assert found is not None
    assert found.limits == Limits(requests_per_minute=5)
    store.away = False
    ring.refresh()
    assert ring.find(bytes.fromhex(hashed(key))) is None
    assert ring.is_revoked(bytes.fromhex(hashed(key)))
    assert ring.any


def test_a_key_of_the_store_is_a_client_with_its_name_mode_and_limits() -> None:
    records = KeyRecords(MemoryThreads())
    _, key = records.create("team", {"mode": "off", "recall": True, "operator": True, "limits": {"at_once": 2}})
    client = clients_of((), records).identify(sent(key))
    assert (client.name, client.account, client.mode, client.recall, client.operator) == (
        "team",
        "team",
        "off",
        True,
        True,
    )
    assert (client.limits, client.key, client.scope) == (Limits(at_once=2), "", scope_of(key.encode()))
    records.revoke("team")
    with pytest.raises(Refused, match="revoked"):
        clients_of((), records).identify(sent(key))


def test_a_replaced_key_keeps_its_name_and_limits_and_the_old_one_is_unknown() -> None:
    records = KeyRecords(MemoryThreads())
    first, old = records.create("team", {"dollars_per_day": 2})
    second, new = records.rotate("team")
    assert (second.table.limits, second.created) == (first.table.limits, first.created)
    clients = clients_of((), records)
    assert clients.identify(sent(new)).account == "team"
    with pytest.raises(Refused, match="does not know this key"):
        clients.identify(sent(old))


def test_the_file_comes_first_and_what_cannot_be_read_is_passed_over() -> None:
    store = MemoryThreads()
    records = KeyRecords(store)
    records.create("team", {})
    store.keep_fact(KEYS, "newer", '{"name": "newer", "hash": {"kind": "argon2"}}')
    store.keep_fact(KEYS, "broken", "no JSON")
    assert [record.table.name for record in records.all()] == ["team"]
    ring = KeyRing((KeyTable(name="file", hash="ab" * 32, limits=Limits(at_once=1)),), records)
    ring.refresh()
    assert ring.limits_of("file") == Limits(at_once=1)
    with pytest.raises(InputError, match="is in the configuration file"):
        ring.expect_free("file")


def test_what_is_kept_and_shown_of_a_key_does_not_tell_it() -> None:
    store, at = MemoryThreads(), datetime(2026, 11, 16, 12, tzinfo=UTC)
    record, key = KeyRecords(store, lambda: at).create("team", {})
    kept = store.facts(KEYS)["team"]
    assert key not in kept
    assert key.removeprefix("el-") not in kept
    assert hashed(key) in kept
    shown = json.dumps(record.shown())
    assert hashed(key) not in shown
    assert record.scope not in shown
    assert "2026-11-16T12:00:00+00:00" in shown


FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "requests_per_minute": st.none() | st.integers(1, 10**9),
        "tokens_per_day": st.none() | st.integers(1, 10**12),
        "dollars_per_day": st.none() | st.floats(0.001, 1e6),
    },
)


@given(st.lists(FIGURES, min_size=1, max_size=5))
def test_changes_add_up_and_survive_the_store(changes: list[dict[str, float | None]]) -> None:
    records = KeyRecords(MemoryThreads())
    records.create("team", changes[0])
    wanted = dict(changes[0])
    for change in changes[1:]:
        records.change("team", change)
        wanted |= change
    set_now = {name: value for name, value in wanted.items() if value is not None}
    assert records.one("team").shown()["limits"] == set_now
