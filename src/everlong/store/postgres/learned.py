"""What was learned beside the threads: token counts and facts."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from everlong.core import JsonText, bytes_of
from everlong.store.bodies import text_of_bytes
from everlong.store.postgres.connections import Link
from everlong.store.postgres.values import name_key

__all__ = ["counts", "drop_facts", "fact", "facts", "keep_counts", "keep_fact"]


def counts(link: Link, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
    """Token counts by reference, as far as they are known."""
    found = link.execute(
        "SELECT ref, tokens FROM everlong.counts WHERE vocabulary = %s AND ref = ANY(%s)",
        (bytes_of(vocabulary), [bytes_of(ref) for ref in refs]),
    )
    return {text_of_bytes(ref): tokens for ref, tokens in found}


def keep_counts(link: Link, vocabulary: str, tokens: Mapping[str, int]) -> None:
    """Keep token counts. In one order everywhere: two that keep the same wait, and do not block."""
    rows = sorted((bytes_of(ref), count) for ref, count in tokens.items())
    link.execute(
        "INSERT INTO everlong.counts SELECT %s, ref, tokens FROM unnest(%s::bytea[], %s::integer[])"
        " AS new (ref, tokens) ON CONFLICT (vocabulary, ref) DO UPDATE SET tokens = excluded.tokens"
        " WHERE counts.tokens <> excluded.tokens",
        (bytes_of(vocabulary), [ref for ref, _ in rows], [count for _, count in rows]),
    )


def fact(link: Link, kind: str, key: str) -> JsonText | None:
    """What was learned under that name."""
    found = link.execute(
        "SELECT value FROM everlong.facts WHERE sha256(kind) = %s AND sha256(key) = %s", (name_key(kind), name_key(key))
    ).fetchone()
    return None if found is None else text_of_bytes(found[0])


def keep_fact(link: Link, kind: str, key: str, value: JsonText, now: datetime) -> None:
    """Keep it; the newest counts."""
    link.execute(
        "INSERT INTO everlong.facts (kind, key, value, kept) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (sha256(kind), sha256(key)) DO UPDATE SET value = excluded.value, kept = excluded.kept",
        (bytes_of(kind), bytes_of(key), bytes_of(value), now),
    )


def drop_facts(link: Link, kind: str, before: datetime) -> int:
    """Forget what was last kept before that time; how many."""
    query = "DELETE FROM everlong.facts WHERE sha256(kind) = %s AND kept < %s"
    return link.execute(query, (name_key(kind), before)).rowcount


def facts(link: Link, kind: str) -> dict[str, JsonText]:
    """All of one kind, by key."""
    found = link.execute("SELECT key, value FROM everlong.facts WHERE sha256(kind) = %s", (name_key(kind),))
    return {text_of_bytes(key): text_of_bytes(value) for key, value in found}
