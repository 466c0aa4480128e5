"""What operators see: every key with its limits and spending, and the spending of each day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from everlong.core import JsonObject
from everlong.errors import InputError
from everlong.gateway.config import KeyTable
from everlong.gateway.keys.records import KeyRecords, key_fields
from everlong.gateway.keys.spend import Ledger, Spend

__all__ = ["MOST_DAYS", "shown_key", "shown_keys", "shown_spend"]

MOST_DAYS = 366
BACK = 31  # days that are searched for the last use


def shown_keys(records: KeyRecords, ledger: Ledger, tables: Sequence[KeyTable] = ()) -> list[JsonObject]:
    """Return all keys, those of the file first, each with what it spent today and this month."""
    in_file = {table.name for table in tables}
    of_file: list[JsonObject] = [
        {**key_fields(table), "source": "file", "created": None, "revoked": None} for table in tables
    ]
    of_store = [record.shown() for record in records.all() if record.table.name not in in_file]
    return [shown_key(row, ledger) for row in (*of_file, *of_store)]


def shown_key(row: JsonObject, ledger: Ledger) -> JsonObject:
    """Return what is shown of a key, with its spending."""
    now = _today()
    month = now.strftime("%Y-%m")
    days = ledger.days(str(row["name"]), min(month, (now - timedelta(days=BACK)).isoformat()))
    this_month = Spend()
    for day, spend in days.items():
        this_month = this_month.plus(spend) if day >= month else this_month
    last = max((spend.last for spend in days.values()), default="")
    return {
        **row,
        "last_used": last or None,
        "today": _written(days.get(now.isoformat(), Spend())),
        "month": _written(this_month),
    }


def shown_spend(records: KeyRecords, ledger: Ledger, days: int, name: str = "") -> JsonObject:
    """Return what every key, or one of them, spent on each of the last days. Raises InputError."""
    if not 1 <= days <= MOST_DAYS:
        raise InputError(f"days must be a number from 1 to {MOST_DAYS}")
    today = _today()
    listed = [(today - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    names = sorted({*ledger.names(), *(record.table.name for record in records.all())})
    if name and name not in names:
        raise InputError(f"there is no key {name!r} in this store, and nothing was spent with one")
    rows = [_of_key(each, ledger, listed) for each in ([name] if name else names)]
    return {"days": [*listed], "keys": [*rows]}


def _of_key(name: str, ledger: Ledger, listed: Sequence[str]) -> JsonObject:
    found = ledger.days(name, listed[0])
    total = Spend()
    for spend in found.values():
        total = total.plus(spend)
    return {
        "name": name,
        "total": _written(total),
        "days": [{"day": day, **_written(found.get(day, Spend()))} for day in listed],
    }


def _written(spend: Spend) -> JsonObject:
    return {
        "requests": spend.requests,
        "prompt": spend.prompt,
        "output": spend.output,
        "dollars": round(spend.dollars, 6),
        "summaries": round(spend.aside, 6),
        "unpriced": spend.unpriced,
    }


def _today() -> date:
    return datetime.now(UTC).date()
