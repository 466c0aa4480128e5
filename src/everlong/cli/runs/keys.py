"""What `everlong keys` does, with the store, the ledger and the words of a language."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import click

from everlong.cli.sessions.options import session_store, store_exists
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, pairs, table
from everlong.cli.terminal.text import one_line
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.errors import InputError
from everlong.gateway import KeyRecords, Ledger, settings_here, shown_key, shown_keys, shown_spend
from everlong.store import default_store, store_path

__all__ = ["Desk"]

NONE = "none"  # removes a limit
LIFTED = frozenset({NONE, "-"})


class Desk:
    """An operator's work on the keys of one store: `with Desk(store, file, language) as desk: desk.list()`."""

    def __init__(
        self, store: str | None, file: str | None, language: Language, *, as_json: bool = False, new: bool = False
    ) -> None:
        self._config = settings_here({"store": store}, os.environ | ({"EVERLONG_CONFIG": file} if file else {}))
        self._url = self._config.store or default_store(os.environ, sys.platform)
        self._json = as_json
        self._new = new
        self._say = Words(language, "keys")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if not self._new and not store_exists(self._url):
            raise InputError(f"there is no store at {store_path(self._url)}: `everlong keys create NAME` creates one")
        store = self._stack.enter_context(session_store(self._url, new=self._new))
        self._records, self._ledger = KeyRecords(store), Ledger(store)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # --- changes -----------------------------------------------------------------------------------

    def create(self, name: str, given: Mapping[str, Any]) -> None:
        """Create a key, and print it once."""
        self._expect_free(name)
        record, key = self._records.create(name, _given(given))
        self._print_key(key, shown_key(record.shown(), self._ledger), "created")

    def set(self, name: str, given: Mapping[str, Any]) -> None:
        """Change a key."""
        self._expect_free(name)
        wanted = _given(given)
        if not wanted:
            raise click.UsageError(self._say("nothing_to_set"))
        self._show(shown_key(self._records.change(name, wanted).shown(), self._ledger))

    def rotate(self, name: str) -> None:
        """Replace a key, and print the new one once."""
        self._expect_free(name)
        record, key = self._records.rotate(name)
        self._print_key(key, shown_key(record.shown(), self._ledger), "rotated")

    def revoke(self, name: str) -> None:
        """Revoke a key."""
        self._expect_free(name)
        row = shown_key(self._records.revoke(name).shown(), self._ledger)
        if self._json:
            print_json(row)
        else:
            click.echo(self._say("revoked", name=name))

    def _expect_free(self, name: str) -> None:
        if any(table.name == name for table in self._config.keys):
            raise InputError(self._say("in_file", name=name))

    def _print_key(self, key: str, row: Mapping[str, Any], said: str) -> None:
        if self._json:
            print_json({"key": key, **row})
            return
        click.echo(key)
        click.echo(self._say(said, name=row["name"]), err=True)

    # --- reading -----------------------------------------------------------------------------------

    def list(self) -> None:
        """Print all keys."""
        rows = shown_keys(self._records, self._ledger, self._config.keys)
        if self._json:
            print_json({"keys": rows})
        elif not rows:
            click.echo(self._say("no_keys"))
        else:
            heads = ("head_name", "head_limits", "head_requests", "head_tokens", "head_dollars", "head_used")
            console().print(table([self._say(head) for head in heads], [self._listed(row) for row in rows]))

    def _listed(self, row: Mapping[str, Any]) -> tuple[str, ...]:

        today = row["today"]
        marks = [self._say(mark) for mark in ("operator", "revoked_mark") if row[mark.removesuffix("_mark")]]
        if row["source"] == "file":
            marks.append(self._say("file_mark"))
        name = one_line(row["name"]) + (f" ({self._say('comma').join(marks)})" if marks else "")
        used = str(row["last_used"] or "")[:10] or self._say("never")
        return name, self._limits(row["limits"]), *_figures(today), used

    def _limits(self, limits: Mapping[str, float]) -> str:
        texts = [self._say(f"limit_{name}", n=_number(value)) for name, value in limits.items()]
        return self._say("comma").join(texts) or self._say("no_limits")

    def show(self, name: str) -> None:
        """Print one key."""
        rows = shown_keys(self._records, self._ledger, self._config.keys)
        found = next((row for row in rows if row["name"] == name), None)
        if found is None:
            raise InputError(self._say("no_such", name=name))
        self._show(found)

    def _show(self, row: Mapping[str, Any]) -> None:
        if self._json:
            print_json(row)
            return

        lines = [(self._say("head_name"), one_line(row["name"])), (self._say("head_limits"), "")]
        lines[1] = (self._say("head_limits"), self._limits(row["limits"]))
        lines += [(self._say("row_mode"), row["mode"])] if row["mode"] else []
        lines += [
            (self._say(f"row_{name}"), str(row[name]).replace("T", " ").removesuffix("+00:00"))
            for name in ("created", "revoked", "last_used")
            if row[name]
        ]
        for span in ("today", "month"):
            requests, tokens, dollars = _figures(row[span])
            lines.append((self._say(f"row_{span}"), self._say("spent", requests=requests, tokens=tokens, cost=dollars)))
        console().print(pairs(lines))

    def spend(self, name: str, days: int) -> None:
        """Print what was spent: by key, or by day of one key."""
        report: Any = shown_spend(self._records, self._ledger, days, name)
        if self._json:
            print_json(report)
            return
        keys: Sequence[Any] = report["keys"]
        if name:
            rows = [(day["day"], *_figures(day)) for day in keys[0]["days"] if day["requests"] or day["prompt"]]
        else:
            rows = [(one_line(row["name"]), *_figures(row["total"])) for row in keys]
        if not rows:
            click.echo(self._say("nothing_spent"))
            return
        first = "head_day" if name else "head_name"
        heads = (first, "head_requests", "head_tokens", "head_dollars")
        out = console()
        out.print(table([self._say(head) for head in heads], rows))
        unpriced = sum(row["total"]["unpriced"] for row in keys)
        summaries = sum(row["total"]["summaries"] for row in keys)
        if summaries:
            out.print(self._say("for_summaries", cost=_dollars(summaries)), style="dim")
        if unpriced:
            out.print(self._say.many("unpriced", unpriced), style="dim")


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a key that were given; `none` removes a limit."""
    named = {name: value for name, value in given.items() if value is not None}
    return {name: None if value in LIFTED else value for name, value in named.items()}


def _figures(spent: Mapping[str, Any]) -> tuple[str, str, str]:
    return amount(spent["requests"]), amount(spent["prompt"] + spent["output"]), _dollars(spent["dollars"])


def _dollars(cost: float) -> str:
    return f"{cost:.2f}" if cost >= 1 or not cost else f"{cost:.4f}"


def _number(value: float) -> str:
    return amount(int(value)) if float(value).is_integer() else f"{value:g}"
