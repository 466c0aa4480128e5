"""Who asks, by the key in the headers; a key is never repeated."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from everlong.errors import Refused
from everlong.gateway.clients import Client, request_mode
from everlong.gateway.config import KeyTable, Limits
from everlong.gateway.keys.records import hashed, new_key
from tests.gateway.keys.made import clients_of

Headers = Sequence[tuple[bytes, bytes]]

ALICE, BOB = "el-alice-0123456789", "el-bob-0123456789"
KNOWN = clients_of(
    [
        KeyTable(name="alice", hash=hashed(ALICE), mode="off", recall=True, limits=Limits(at_once=2)),
        KeyTable(name="bob", hash=hashed(BOB).upper()),
    ]
)
EVERYONE = clients_of()


def bearer(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"authorization", f"Bearer {key}".encode())]


CARRIED: list[tuple[str, Headers]] = [
    ("bearer", bearer(ALICE)),
    ("bearer, other case", [(b"Authorization", b"bEARER " + ALICE.encode())]),
    ("blanks around", [(b"authorization", b" Bearer   " + ALICE.encode() + b" ")]),
    ("x-api-key", [(b"x-api-key", ALICE.encode())]),
    ("api-key", [(b"api-key", ALICE.encode())]),
    ("no scheme", [(b"authorization", ALICE.encode())]),
    ("both the same", [*bearer(ALICE), (b"x-api-key", ALICE.encode())]),
    ("one empty", [*bearer(ALICE), (b"x-api-key", b"")]),
]


@pytest.mark.parametrize("headers", [row[1] for row in CARRIED], ids=[row[0] for row in CARRIED])
def test_a_key_is_found_wherever_clients_put_it(headers: Headers) -> None:
    client = KNOWN.identify(headers)
    assert (client.name, client.mode, client.recall, client.limits) == ("alice", "off", True, Limits(at_once=2))
    assert EVERYONE.identify([(name, value.replace(b"el-", b"sk-")) for name, value in headers]).key == ALICE.replace(
        "el-", "sk-"
    )


def test_what_is_not_set_is_left_to_the_gateway() -> None:
    client = KNOWN.identify(bearer(BOB))
    assert (client.name, client.mode, client.recall, client.limits) == ("bob", None, None, Limits())


REFUSED: list[tuple[str, Headers, int, str]] = [
    ("none", [(b"host", b"x")], 401, "missing_key"),
    ("empty", [(b"x-api-key", b" ")], 401, "missing_key"),
    ("bearer of nothing", [(b"authorization", b"Bearer ")], 401, "missing_key"),
    ("wrong", bearer("el-mallory"), 401, "invalid_key"),
    ("a part", bearer(ALICE[:-1]), 401, "invalid_key"),
    ("the hash", bearer(hashed(ALICE)), 401, "invalid_key"),
    ("another scheme", [(b"authorization", b"Basic " + ALICE.encode())], 401, "invalid_key"),
    ("not ASCII", [(b"x-api-key", "el-ключ".encode())], 401, "invalid_key"),
    ("not UTF-8", [(b"x-api-key", b"el-\xff\xfe")], 401, "invalid_key"),
    ("a line end", [(b"x-api-key", b"el-1\r\nx-admin: 1")], 401, "invalid_key"),
    ("joined", [(b"authorization", f"Bearer {ALICE}, Bearer {BOB}".encode())], 401, "invalid_key"),
    ("two of a name", [*bearer(ALICE), *bearer(ALICE)], 400, "two_keys"),
    ("two x-api-key", [(b"x-api-key", ALICE.encode()), (b"X-Api-Key", BOB.encode())], 400, "two_keys"),
    ("two that differ", [*bearer(ALICE), (b"x-api-key", BOB.encode())], 400, "two_keys"),
]


@pytest.mark.parametrize(("headers", "status", "kind"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_who_is_not_known_is_refused_and_the_key_not_repeated(headers: Headers, status: int, kind: str) -> None:
    with pytest.raises(Refused) as refused:
        KNOWN.identify(headers)
    assert (refused.value.status, refused.value.kind) == (status, kind)
    assert not re.search(r"el-(?!KEY)|[0-9a-f]{20}", str(refused.value))


def test_a_key_of_the_gateway_is_never_passed_on_or_shown() -> None:
    client = KNOWN.identify(bearer(ALICE))
    assert client.key == ""
    assert EVERYONE.identify(bearer(ALICE)).key == ""  # made a moment ago, and not known here yet
    assert "sk-secret" not in repr(EVERYONE.identify(bearer("sk-secret")))


def test_a_closed_gateway_without_keys_serves_nobody() -> None:
    with pytest.raises(Refused) as refused:
        clients_of(closed=True).identify(bearer(ALICE))
    assert refused.value.status == 401


def test_without_keys_everyone_is_served_and_told_apart() -> None:
    assert EVERYONE.identify([]) == Client(scope="anonymous")
    one, other = EVERYONE.identify(bearer("sk-1")), EVERYONE.identify(bearer("sk-2"))
    basic = EVERYONE.identify([(b"authorization", b"Basic dTpw")])
    assert len({one.scope, other.scope, basic.scope, "anonymous"}) == 4


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1, max_size=40))
def test_a_scope_is_steady_and_does_not_tell_the_key(key: str) -> None:
    scope = EVERYONE.identify([(b"x-api-key", key.encode())]).scope
    assert re.fullmatch(r"[0-9a-f]{24}", scope)
    assert scope == EVERYONE.identify([(b"x-api-key", key.encode())]).scope
    assert not hashed(key).startswith(scope)


def test_with_and_without_configured_keys_a_key_has_one_scope() -> None:
    assert KNOWN.identify(bearer(BOB)).scope == EVERYONE.identify(bearer(BOB)).scope


def test_new_keys_are_long_and_different_and_accepted() -> None:
    keys = {new_key() for _ in range(50)}
    assert len(keys) == 50
    for key in keys:
        assert re.fullmatch(r"el-[A-Za-z0-9_-]{40}", key)
    key = keys.pop()
    assert clients_of([KeyTable(name="new", hash=hashed(key))]).identify(bearer(key)).name == "new"


MODES = [
    ("nothing said", [], None, "auto"),
    ("the key's", [], "trim", "trim"),
    ("the request's", [(b"x-everlong-mode", b"off")], "trim", "off"),
    ("other case", [(b"X-Everlong-Mode", b" Trim ")], None, "trim"),
]


@pytest.mark.parametrize(("headers", "own", "mode"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_the_mode_of_a_request(headers: Headers, own: str | None, mode: str) -> None:
    assert request_mode(headers, Client(scope="s", mode=own), "auto") == mode


@pytest.mark.parametrize("values", [[b"on"], [b""], [b"\xff"], [b"off", b"off"], [b"off, trim"]])
def test_a_bad_mode_is_refused(values: list[bytes]) -> None:
    with pytest.raises(Refused, match="off, trim, auto") as refused:
        request_mode([(b"x-everlong-mode", value) for value in values], Client(scope="s"), "auto")
    assert (refused.value.status, refused.value.kind) == (400, "bad_mode")
