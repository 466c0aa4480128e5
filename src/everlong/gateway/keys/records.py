"""The keys in the store: created, changed and revoked by an operator, read by every serving process.

Only the hash of a key is stored, and the scope of its state; the key itself is shown once. A revoked key stays in the
list: a gateway that ever had keys must not serve everyone only because the last one is gone.
"""

import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from everlong.core import JsonObject, JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError
from everlong.gateway.config import NO_LIMITS, KeyTable, Limits
from everlong.gateway.values import Unknown, Wrong, table_of

__all__ = [
    "BEGINNING",
    "REFRESHED",
    "KeyRecord",
    "KeyRecords",
    "KeyRing",
    "hashed",
    "key_fields",
    "new_key",
    "scope_of",
]

log = logging.getLogger("everlong.gateway")

KEYS = "gateway/keys"
BEGINNING = "el-"
KEY_LENGTH = 40
SCOPE_DIGITS = 24
LONGEST_NAME = 100  # characters
REFRESHED = 2.0  # seconds between two reads of the keys in the store
#: What an operator may set for a key.
SETTABLE = ("mode", "recall", "operator", "limits")


def hashed(key: str) -> str:
    """Return the stored form of a key: its SHA-256, in hex."""
    return sha256(key.encode()).hexdigest()


def new_key() -> str:
    """Return a new key for a client: "el-" and 40 random characters."""
    return BEGINNING + secrets.token_urlsafe(KEY_LENGTH)[:KEY_LENGTH]


def scope_of(key: bytes) -> str:
    """Return the name for a key's state: derived from the key, but different from its stored hash."""
    return sha256(b"everlong scope\0" + key).hexdigest()[:SCOPE_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A key in the store: its table as in a file, and when it was created and revoked."""

    table: KeyTable
    scope: str = ""
    created: str = ""
    revoked: str = ""

    def shown(self) -> JsonObject:
        """Return what an operator sees of the key: no hash, no scope."""
        return {**key_fields(self.table), "source": "store", "created": self.created, "revoked": self.revoked or None}


def key_fields(table: KeyTable) -> JsonObject:
    """Return what an operator sees of a key, with the limits that are set."""
    limits: JsonObject = {name: value for name, value in asdict(table.limits).items() if value is not None}
    return {
        "name": table.name,
        "mode": table.mode,
        "recall": table.recall,
        "operator": table.operator,
        "limits": limits,
    }


class KeyRecords:
    """The keys in a store. Every method accesses the store and may block."""

    def __init__(self, store: Threads, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self._clock = clock

    def all(self) -> list[KeyRecord]:
        """Return all keys by name, revoked ones too."""
        kept = self._store.facts(KEYS)
        found = (_decoded(kept[name]) for name in sorted(kept))
        return [record for record in found if record is not None]

    def one(self, name: str) -> KeyRecord:
        """Return a key by its name. Raises InputError if there is none."""
        text = self._store.fact(KEYS, name)
        record = None if text is None else _decoded(text)
        if record is None:
            raise _no_such(name)
        return record

    def create(self, name: str, given: Mapping[str, Any]) -> tuple[KeyRecord, str]:
        """Create a key; return its record and, only now, the key itself. Raises InputError if the name is taken."""
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
            raise InputError(f"name must say who the key is for: 1 to {LONGEST_NAME} characters, without slashes")
        key = new_key()
        table = _table({"name": name, "hash": hashed(key), **_settable(given)})
        made = KeyRecord(table=table, scope=scope_of(key.encode()), created=self._now())

        def change(text: JsonText | None) -> JsonText:
            known = None if text is None else _decoded(text)
            if known is not None and not known.revoked and known.table.hash != table.hash:
                raise InputError(f"key {name!r} already exists: revoke it, or choose another name")
            return _encoded(made)

        self._store.change_fact(KEYS, name, change)
        return made, key

    def change(self, name: str, given: Mapping[str, Any]) -> KeyRecord:
        """Change what a key may do: given values replace old ones, and a limit of None is removed.

        Raises InputError.
        """
        wanted = _settable(given)

        def changed(record: KeyRecord) -> KeyRecord:
            limits = asdict(record.table.limits) | wanted.get("limits", {})
            known = {each: getattr(record.table, each) for each in ("name", "hash", *SETTABLE)}
            return replace(record, table=_table({**known, **wanted, "limits": limits}))

        return self._changed(name, changed)

    def revoke(self, name: str) -> KeyRecord:
        """Revoke a key permanently; a second call does nothing. Raises InputError if there is none."""
        now = self._now()
        return self._changed(name, lambda record: replace(record, revoked=record.revoked or now), revoked=True)

    def rotate(self, name: str) -> tuple[KeyRecord, str]:
        """Replace a key with a new one; the old one is unknown from then on. Raises InputError."""
        key = new_key()

        def changed(record: KeyRecord) -> KeyRecord:
            return replace(record, table=replace(record.table, hash=hashed(key)), scope=scope_of(key.encode()))

        return self._changed(name, changed), key

    def _changed(self, name: str, changed: Callable[[KeyRecord], KeyRecord], *, revoked: bool = False) -> KeyRecord:
        def change(text: JsonText | None) -> JsonText:
            known = None if text is None else _decoded(text)
            if known is None:
                raise _no_such(name)
            if known.revoked and not revoked:
                raise InputError(f"the key {name!r} is revoked: create a new one with everlong keys create")
            return _encoded(changed(known))

        record = _decoded(self._store.change_fact(KEYS, name, change) or "")
        assert record is not None, "what was just written"
        return record

    def _now(self) -> str:
        return self._clock().isoformat(timespec="seconds")


def _no_such(name: str) -> InputError:
    return InputError(f"there is no key {name!r} in this store; change a key of the configuration file in that file")


def _settable(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields; limits may be given among them. Raises InputError for an unknown field."""
    limits = dict(given.get("limits") or {})
    names = {each.name for each in fields(Limits)}
    own: dict[str, Any] = {}
    for name, value in given.items():
        if name in names:
            limits[name] = value
        elif name not in SETTABLE:
            raise InputError(f"a key has no field {name!r}; there are {', '.join((*SETTABLE, *sorted(names)))}")
        elif name != "limits":
            own[name] = value
    _read(table_of(Limits), limits)
    return {**own, "limits": limits}


def _table(values: Mapping[str, Any]) -> KeyTable:
    table: KeyTable = _read(table_of(KeyTable), dict(values))
    return table


def _read(read: Callable[[object], Any], value: object) -> Any:
    try:
        return read(value)
    except Unknown as unknown:
        raise InputError(f"a key has no field {unknown.place.lstrip('.')!r}{unknown.problem}") from None
    except Wrong as wrong:
        raise InputError(f"{wrong.place.lstrip('.')} {wrong.problem}") from None


def _encoded(record: KeyRecord) -> JsonText:
    limits = {name: value for name, value in asdict(record.table.limits).items() if value is not None}
    values = {each: getattr(record.table, each) for each in ("name", "hash", "mode", "recall", "operator")}
    more = {"limits": limits, "scope": record.scope, "created": record.created, "revoked": record.revoked}
    return json.dumps(values | more)


def _decoded(text: JsonText) -> KeyRecord | None:
    """The record; None if a newer version wrote it and it cannot be read."""
    try:
        values = json.loads(text)
        table = table_of(KeyTable)({name: values[name] for name in ("name", "hash", *SETTABLE)})
        return KeyRecord(table=table, scope=values["scope"], created=values["created"], revoked=values["revoked"])
    except (ValueError, KeyError, TypeError, Wrong):
        return None


class KeyRing:
    """The keys that this process knows: those of the file, and recently read ones of the store.

    A store that cannot be read changes nothing: known keys stay valid.
    """

    def __init__(self, tables: Sequence[KeyTable], records: KeyRecords) -> None:
        self.tables = tuple(tables)
        self.records = records
        self._failing = False
        self._revoked: frozenset[bytes] = frozenset()
        self._known = {bytes.fromhex(table.hash): table for table in self.tables}
        self._limits = {table.name: table.limits for table in self.tables}
        #: Names by scope: all of the store's keys, and those of the file that were used here.
        self.names: dict[str, str] = {}
        #: Whether there are or ever were keys: then a key is needed.
        self.any = bool(self._known)

    def refresh(self) -> None:
        """Read the keys of the store. Not in the event loop."""
        try:
            kept = self.records.all()
        except EverlongError as error:
            if not self._failing:
                log.warning("the gateway's store: %s; the keys that are known stay valid", error)
            self._failing = True
            return
        self._failing = False
        valid = [record for record in kept if not record.revoked]
        own = {bytes.fromhex(table.hash): table for table in self.tables}
        self._known = {bytes.fromhex(record.table.hash): record.table for record in valid} | own
        self._limits = {table.name: table.limits for table in self._known.values()}
        self._revoked = frozenset(bytes.fromhex(record.table.hash) for record in kept if record.revoked)
        self.names |= {record.scope: record.table.name for record in valid}
        self.any = self.any or bool(kept)

    def find(self, digest: bytes) -> KeyTable | None:
        """Return the table of the key with this SHA-256; None if it is unknown or revoked.

        The time of a look-up may reveal something about the digest of a guess, but nothing about a key.
        """
        return self._known.get(digest)

    def is_revoked(self, digest: bytes) -> bool:
        """Return whether the key was revoked."""
        return digest in self._revoked

    def expect_free(self, name: str) -> None:
        """Raise InputError if the name belongs to a key in the file, which no command can change."""
        if any(table.name == name for table in self.tables):
            raise InputError(f"the key {name!r} is in the configuration file: change it there and restart the gateway")

    def limits_of(self, name: str) -> Limits:
        """Return the limits of a key by its name; no limits if there is no such key."""
        return self._limits.get(name, NO_LIMITS)
