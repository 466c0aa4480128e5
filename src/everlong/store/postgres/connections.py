"""Connections to one database: a pool, and transactions that are retried until they succeed once.

A piece of work is one transaction that may be repeated. It waits for a server that restarts, a broken connection, a
deadlock or a lock that is held too long, within a limit; then the last error is raised in one line.
"""

import logging
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from everlong.errors import InputError, StoreBusy, StoreError
from everlong.store.damage import Damage

__all__ = ["Connections", "Link"]

Result = TypeVar("Result")

FIRST_PAUSE = 0.02  # seconds before the second attempt; doubled each time
LONGEST_PAUSE = 1.0
QUEUE = 2.0  # seconds in the queue for a connection before the server is checked
SILENT = 1.0  # seconds for one attempt at a lock; then it is logged that somebody else holds it
ABANDONED = 60.0  # seconds after which a client that is idle inside a transaction loses it and its locks

#: Errors of the server that waiting does not solve.
_HOPELESS = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|permission denied|no password supplied"
    r"|resolve host|could not translate host|invalid (?:port|connection option|sslmode)"
)
_TRANSIENT = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
_FINAL = (errors.DiskFull, errors.InsufficientPrivilege)
_BUSY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)

logger = logging.getLogger("everlong.store")
# The pool's warnings about a lost server go only to programs that configure logging, not to a terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Link(psycopg.Connection[Any]):
    """A connection that knows where to report unreadable data."""

    damage: Damage


class Connections:
    """A pool of connections to the database at a URL. Thread-safe."""

    def __init__(
        self, url: str, prepare: Callable[[psycopg.Connection[Any]], None], *, most: int, wait: float, patience: float
    ) -> None:
        self._url, self._most, self._patience, self._wait = url, most, patience, min(wait, patience)
        self.damage = Damage()
        settings = {"autocommit": True, "connect_timeout": 10, "application_name": "everlong"}
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise InputError(f"not the URL of a Postgres database: {_line(error)}") from error
        settings = {name: value for name, value in settings.items() if name not in given}
        self._repeat(lambda _rest: _prepared(url, settings, prepare))
        self._pool: ConnectionPool[Link] = ConnectionPool(
            url,
            connection_class=Link,
            kwargs=settings,
            configure=self._configure,
            min_size=1,
            max_size=most,
            reconnect_timeout=0.2,  # the pool's own pauses grow without limit; we retry ourselves
            open=True,
        )

    def run(self, work: Callable[[Link], Result]) -> Result:
        """Run the work in one transaction and return its result. It is repeated if the connection or a lock fails."""
        return self._repeat(lambda rest: self._attempt(work, rest))

    def read(self, work: Callable[[Link], Result]) -> Result:
        """Run the work without a transaction and return its result. That is enough to read a log that only grows."""
        return self._repeat(lambda _rest: self._attempt(work, transaction=False))

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        self._pool.close()

    def _attempt(self, work: Callable[[Link], Result], rest: float = 0.0, *, transaction: bool = True) -> Result:
        """Run the work once. With `rest`, wait that many seconds for a lock, in the order of arrival."""
        with self._pool.connection(timeout=QUEUE) as link:
            try:
                if not transaction:
                    return work(link)
                with link.transaction():
                    if rest:
                        link.execute("SELECT set_config('lock_timeout', %s, true)", (f"{rest:.3f}s",))
                    return work(link)
            except errors.ReadOnlySqlTransaction:
                link.close()  # the server became a standby: the next connection finds the primary
                raise

    def _repeat(self, attempt: Callable[[float], Result]) -> Result:
        started = time.monotonic()
        pause = FIRST_PAUSE
        logged = False
        rest = 0.0
        while True:
            try:
                return attempt(rest)
            except PoolClosed as error:
                raise StoreError("the store was closed") from error
            except _FINAL as error:
                raise StoreError(f"Postgres: {_line(error)}") from error
            except _TRANSIENT as error:
                waited = time.monotonic() - started
                bound = self._wait if isinstance(error, _BUSY) else self._patience
                if waited >= bound or _HOPELESS.search(str(error)):
                    raise self._given_up(error, waited) from error
                rest = max(0.001, self._wait - waited)
                if waited >= SILENT and not logged:
                    logged = True
                    logger.info("%s", _waiting_for(error))
                if not isinstance(error, _BUSY):
                    self._look_again()
            except psycopg.Error as error:
                raise StoreError(f"Postgres: {_line(error)}") from error
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _configure(self, link: Link) -> None:
        """Set up a new connection. An append must be durable when it returns, whatever the server's default is."""
        link.execute(
            "SELECT set_config('lock_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false), set_config('TimeZone', 'UTC', false),"
            " CASE current_setting('synchronous_commit') WHEN 'off'"
            " THEN set_config('synchronous_commit', 'on', false) END",
            (f"{min(SILENT, self._wait):.3f}s", f"{ABANDONED}s"),
        )
        link.damage = self.damage

    def _given_up(self, error: psycopg.Error, waited: float) -> StoreError:
        if isinstance(error, _BUSY):
            return StoreBusy(
                f"another writer has held the thread for {waited:.0f} s; stop that program or try again later"
                " (timeout=SECONDS in the store's URL waits longer)"
            )
        if isinstance(error, PoolTimeout):  # it does not say why, so ask the server
            try:
                psycopg.connect(self._url, connect_timeout=2).close()
            except psycopg.Error as reason:
                error = reason
            else:
                return StoreBusy(f"all {self._most} connections were in use for {waited:.0f} s; try again later")
        return StoreError(f"Postgres does not answer (tried for {waited:.0f} s): {_line(error)}")

    def _look_again(self) -> None:
        """Drop the connections that broke together with the one in use."""
        pool = getattr(self, "_pool", None)
        if pool is not None and not pool.closed:
            pool.check()


def _prepared(url: str, settings: dict[str, Any], prepare: Callable[[psycopg.Connection[Any]], None]) -> None:
    with psycopg.connect(url, **settings) as link:
        prepare(link)


def _waiting_for(error: psycopg.Error) -> str:
    if isinstance(error, _BUSY):
        return "Postgres: waiting for another writer that holds the thread"
    return "Postgres: waiting for the server, which does not answer"


def _line(error: psycopg.Error) -> str:
    """The error's text as one line, without the details, which quote rows."""
    return " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__
