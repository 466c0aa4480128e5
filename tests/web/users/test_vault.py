"""Keys in the store: sealed, for their owner alone, with a secret that is not there."""

import pytest

from everlong.errors import InputError
from everlong.store import MemoryThreads
from everlong.web.state.sources import Sources
from everlong.web.users.members import MemberThreads
from everlong.web.users.vault import Vault

SECRET = "a long secret of the operator"
KEY = "sk-of-a-provider-1234"


def test_what_is_kept_is_sealed_for_its_owner_alone() -> None:
    store = MemoryThreads()
    ada, bob = MemberThreads(store, "app/ada"), MemberThreads(store, "app/bob")
    sources = Sources((), None, vault=Vault(ada, SECRET, "app/ada"))
    sources.add(sources.planned("https://models.example/v1", name="mine", key=KEY))
    (sealed,) = ada.facts("app sealed").values()
    assert KEY not in sealed
    assert "models.example" not in sealed
    again = Sources((), None, vault=Vault(ada, SECRET, "app/ada"))
    again.load()
    assert [(one.name, one.endpoint.key) for one in again.added] == [("mine", KEY)]
    bob.keep_fact("app sealed", "sources", sealed)  # copied into another's place
    for vault in (
        Vault(bob, SECRET, "app/bob"),
        Vault(ada, SECRET + "!", "app/ada"),
        Vault(MemoryThreads(), SECRET, "app/ada"),
    ):
        other = Sources((), None, vault=vault)
        other.load()
        assert other.added == ()
    for broken in ("", "{}", '"x"', sealed[:-8] + '"'):
        ada.keep_fact("app sealed", "sources", broken)
        again.load()
        assert again.added == ()


def test_a_short_secret_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match="EVERLONG_SECRET must be a random text of at least 16 characters"):
        Vault(MemoryThreads(), "short", "")
