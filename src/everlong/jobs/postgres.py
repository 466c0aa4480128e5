"""Jobs in one Postgres database, with procrastinate: stored on request, leased by a process, taken over if it dies.

A job is a row, and its key is the row's lock, so that one job per key runs at a time, on any machine. A working process
reports every few seconds; the jobs of a silent process go back to the queue. Work that only this process can do runs in
`LocalJobs`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, LiteralString
from urllib.parse import quote, unquote_to_bytes

import procrastinate
import psycopg
from procrastinate.exceptions import ProcrastinateException
from procrastinate.job_context import AbortReason, JobContext
from procrastinate.jobs import Job as KeptJob, Status
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.worker import Worker

from everlong.core import bytes_of
from everlong.errors import EverlongError, NoThread, StoreError
from everlong.jobs.contract import Counts, End, Handler, Job, NotHere, Period, Result, attempted
from everlong.jobs.local import ATTEMPTS, PAUSE, LocalJobs
from everlong.jobs.tables import make_tables

__all__ = ["Kept", "Lease", "PostgresJobs"]

log = logging.getLogger("everlong.jobs")
# procrastinate's log quotes keys and errors at length; our own lines say what an operator needs.
logging.getLogger("procrastinate").setLevel(logging.CRITICAL + 1)

AT_ONCE = 2
CARE = "care"  # the queue for jobs that maintain the queue itself
FIRST = 1_000_000  # their priority
MOST_BEGUN = 5  # processes that may die while running a job before it counts as failed
MOST_AWAY = 50  # times that a job is put back because the store did not answer
ELSEWHERE = 30.0  # seconds after which a job that a process cannot do is offered again
PATIENCE = 60.0  # seconds for which a request is retried while the server does not answer
AGAIN = 1.0  # seconds before a worker that lost the server starts again
LAST = 10.0  # seconds after its grace period in which a worker must have ended
FINISH = 20.0  # seconds that jobs have to end when the server is lost
CONNECTIONS = 4
CRON = {Period.HOUR: "0 * * * *", Period.DAY: "0 3 * * *"}
#: Our names for procrastinate's states.
NAMES = {"todo": "waiting", "doing": "running", "aborted": "cancelled"}
#: A job that was cancelled and then put back or taken over: procrastinate calls it failed, but nobody needs it.
_GIVEN_UP: LiteralString = "(status = 'failed' AND abort_requested)"
_AWAY = (ProcrastinateException, psycopg.Error, OSError, TimeoutError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How long a process holds a job. It reports every `heartbeat` seconds and counts as dead after `silence`.

    Every `look` seconds a process takes over the jobs of dead processes; every `polling` seconds it looks for work.
    """

    heartbeat: float = 5.0
    silence: float = 20.0
    look: int = 5
    polling: float = 2.0

    @classmethod
    def of(cls, silence: float) -> "Lease":
        """Return the lease of a process that counts as dead after this many seconds of silence."""
        quarter = silence / 4
        return cls(
            heartbeat=quarter, silence=silence, look=min(30, max(1, int(quarter))), polling=min(2.0, quarter / 2)
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A job in the database, as an operator sees it."""

    number: int
    kind: str
    key: str
    state: str
    need: int
    attempts: int


class _PutBack(Exception):
    """The job goes back to the queue, for at least this many seconds."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__("put back")
        self.seconds = seconds


class _OnlyPutBack(BaseRetryStrategy):
    """Repeats only jobs that were put back: retries after a failure happen inside the job."""

    def get_retry_decision(self, *, exception: BaseException, job: KeptJob) -> RetryDecision | None:  # noqa: ARG002
        """Return when the job should run again."""
        if not isinstance(exception, _PutBack):
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=exception.seconds))


class _Worker(Worker):
    """A worker that survives a lost database at the end of a job: another process takes the job over."""

    async def _process_job(self, context: JobContext) -> None:
        try:
            await super()._process_job(context)
        except _AWAY as error:
            log.debug("jobs: the outcome of a job could not be recorded: %s", _line(error))


class PostgresJobs:
    """Runs jobs together with all processes that open the same database.

    With `works` off, this process requests jobs and leaves the work to others. `at_once` is how many it runs at a time.
    """

    durable = True

    def __init__(
        self,
        url: str,
        *,
        at_once: int = AT_ONCE,
        works: bool = True,
        lease: Lease | None = None,
        attempts: int = ATTEMPTS,
        pause: float = PAUSE,
    ) -> None:
        self._url, self._at_once, self._works = url, at_once, works
        self._lease = lease or Lease()
        self._attempts, self._pause = attempts, pause
        self._connector = procrastinate.PsycopgConnector(
            conninfo=url,
            kwargs=_settings(url),
            configure=_find_tables,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=10.0,
            reconnect_timeout=0.5,
        )
        self._app = procrastinate.App(connector=self._connector)
        self._local = LocalJobs()
        self._handlers: dict[str, Handler] = {}
        self._periodic: list[str] = []
        self._loop: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._stopping = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()
        self._begun: dict[int, asyncio.Task[None]] = {}  # jobs that run in this process and are not cancelled
        self._ended = {"done": 0, "failed": 0, "superseded": 0, "taken_over": 0}
        self._seen = {"waiting": 0, "running": 0}
        self._finish = FINISH
        self._add_care()

    # Requesting

    def handle(self, kind: str, handler: Handler) -> None:
        """Run jobs of this kind with the handler from now on."""
        if kind not in self._handlers:
            self._app.task(name=kind, queue=kind, pass_context=True, retry=_OnlyPutBack())(partial(self._work, kind))
        self._handlers[kind] = handler

    def every(
        self, period: Period, kind: str, work: Callable[[], Awaitable[object]], *, everywhere: bool = False
    ) -> None:
        """Run this work once per period, in one of the processes or in each."""
        if everywhere:
            self._local.every(period, kind, work)
            return

        async def once(timestamp: int) -> None:  # noqa: ARG001 - when it was due
            await self._count(kind, kind, work)

        self._add_periodic(CRON[period], kind, once)

    def ask(self, job: Job) -> "asyncio.Future[None]":
        """Request a job. The future is done when the database has it. A waiting job for the same thing is replaced."""
        task = asyncio.create_task(self._ask(job), name=f"asking for {job.kind} of {job.key}")
        self._asking.add(task)
        task.add_done_callback(self._asked)
        return task

    def here(
        self, kind: str, key: str, work: Callable[[], Awaitable[Result]], *, need: int = 0, replace: bool = True
    ) -> "asyncio.Future[Result | None]":
        """Run work that only this process can do."""
        return self._local.here(kind, key, work, need=need, replace=replace)

    def running(self, key: str) -> bool:
        """Return whether a job with this key is running in this process."""
        return self._local.running(key)

    async def cancel(self, key: str) -> int:
        """Cancel the jobs with this key, wherever they run."""
        gone = await self._local.cancel(key)
        try:
            return gone + await self._cancel(_name(key))
        except _AWAY as error:
            raise StoreError(f"the jobs of {key} could not be cancelled: {_line(error)}") from error

    async def _cancel(self, lock: str) -> int:
        waiting = await self._all(
            "DELETE FROM procrastinate_jobs WHERE lock = %s AND status = 'todo' RETURNING id", lock
        )
        self._ended["superseded"] += len(waiting)
        running = await self._all("SELECT id FROM procrastinate_jobs WHERE lock = %s AND status = 'doing'", lock)
        for (number,) in running:
            if (begun := self._begun.pop(number, None)) is not None:
                begun.cancel()  # at once here; other processes are notified
            await self._app.job_manager.cancel_job_by_id_async(number, abort=True)
        return len(waiting) + len(running)

    def counts(self) -> Counts:
        """Return the figures of jobs: waiting and running in all processes, ended in this process."""
        return Counts(**self._seen, **self._ended)

    # Running

    async def start(self, patience: float = PATIENCE) -> None:
        """Open the connections and start to work. Raises StoreError if the database does not answer in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while True:
            try:
                await asyncio.to_thread(_make_ready, self._url)
                await self._app.open_async()
                break
            except _AWAY as error:
                if loop.time() >= until:
                    raise StoreError(f"the job database does not answer: {_line(error)}") from error
            with suppress(*_AWAY):
                await self._app.close_async()
            await asyncio.sleep(AGAIN)
        await self._local.start()
        self._looking = asyncio.create_task(self._look())
        if self._works:
            self._loop = asyncio.create_task(self._run(), name="jobs")

    async def drain(self) -> None:
        """Wait until no job is waiting or running in any process."""
        while True:
            await self._local.drain()
            if self._asking:
                await asyncio.wait(self._asking)
            await self._look_once()
            if not self._asking and not any(self._seen.values()):
                return
            await asyncio.sleep(min(0.2, self._lease.polling))

    async def close(self, grace: float = 0.0) -> None:
        """Stop. Running jobs have `grace` seconds to finish; then they go back to the queue."""
        self._finish = grace
        if self._worker is not None:
            self._worker.shutdown_graceful_timeout = grace
        if self._asking:
            await asyncio.wait(self._asking, timeout=max(grace, 1.0))
        await asyncio.gather(self._stop(grace), self._local.close(grace))
        with suppress(*_AWAY):
            await self._app.close_async()

    async def _stop(self, grace: float) -> None:
        """End the worker. The pool may lose a cancellation while it starts, so it is repeated."""
        self._stopping.set()
        if self._looking is not None:
            self._looking.cancel()
        loop = asyncio.get_running_loop()
        until = loop.time() + grace + LAST
        while self._loop is not None and not self._loop.done():
            if self._worker is not None:
                self._worker.stop()  # type: ignore[no-untyped-call]
            if loop.time() > until:
                self._loop.cancel()
            await asyncio.wait([self._loop], timeout=0.1)
        self._loop = self._looking = self._worker = None

    async def _run(self) -> None:
        """Run the worker, and start it again each time it returns because the database was lost."""
        while not self._stopping.is_set():
            self._worker = _Worker(
                app=self._app,
                queues=[*self._handlers, *self._periodic],
                concurrency=self._at_once,
                fetch_job_polling_interval=self._lease.polling,
                abort_job_polling_interval=self._lease.heartbeat,
                shutdown_graceful_timeout=self._finish,
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self._lease.heartbeat,
                stalled_worker_timeout=self._lease.silence,
            )
            why = ""
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except _AWAY as error:
                why = f" ({_line(error)})"
            if not self._stopping.is_set():
                log.warning("jobs: the database does not answer%s; trying again", why)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), AGAIN)

    async def _work(self, kind: str, context: JobContext, key: str) -> None:
        """Run one job to its end, or put it back so that another process can run it."""
        attempt, number = context.job.attempts, context.job.id or 0
        try:
            load = await self._load(number)
        except _AWAY:
            raise _PutBack(AGAIN) from None
        job = Job(kind=kind, key=_key(key), load=load, need=context.job.priority, attempt=attempt)
        begun = asyncio.create_task(self._count(kind, job.key, partial(self._handlers[kind], job)))
        self._begun[number] = begun
        try:
            await begun
        except NotHere as error:
            if job.attempt >= MOST_BEGUN:
                raise
            log.info("%s of %s is left to other processes: %s", kind, job.key, error)
            raise _PutBack(ELSEWHERE) from None
        except StoreError as error:  # the store did not answer, but the job did not fail
            if isinstance(error, NoThread) or attempt >= MOST_AWAY:
                raise
            raise _PutBack(AGAIN) from None
        except asyncio.CancelledError:
            if number not in self._begun or context.abort_reason() is AbortReason.USER_REQUEST:
                self._ended["superseded"] += 1
                return
            raise _PutBack from None
        finally:
            self._begun.pop(number, None)

    async def _count(self, kind: str, key: str, work: Callable[[], Awaitable[object]]) -> None:
        """Do the work, with retries, and count how it ended."""
        try:
            end = await attempted(work, self._attempts, self._pause)
        except NotHere:
            raise
        except EverlongError as error:
            self._ended["failed"] += not isinstance(error, StoreError) or isinstance(error, NoThread)
            log.warning("%s of %s failed: %s", kind, key, error)
            raise
        self._ended["superseded" if end is End.SUPERSEDED else "done"] += 1

    # The database

    async def _ask(self, job: Job) -> None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + PATIENCE, 0.1
        while True:
            try:
                return await self._keep(job)
            except _AWAY as error:
                if loop.time() >= until:
                    raise StoreError(f"{job.kind} of {job.key} could not be scheduled: {_line(error)}") from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def _keep(self, job: Job) -> None:
        lock = _name(job.key)
        async with self._connector.pool.connection() as link:
            older = await link.execute(
                "DELETE FROM procrastinate_jobs WHERE lock = %s AND task_name = %s AND status = 'todo'",
                (lock, job.kind),
            )
            wish = self._app.configure_task(
                job.kind, allow_unknown=True, lock=lock, queue=job.kind, priority=job.need, connection=link
            )
            number = await wish.defer_async(key=lock)
            if job.load:
                await link.execute("INSERT INTO job_loads (job, load) VALUES (%s, %s)", (number, job.load))
        self._ended["superseded"] += older.rowcount

    def _asked(self, task: "asyncio.Task[None]") -> None:
        self._asking.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("jobs: %s", error)  # it is requested again the next time it is due

    async def _load(self, number: int) -> bytes:
        rows = await self._all("SELECT load FROM job_loads WHERE job = %s", number)
        return bytes(rows[0][0]) if rows else b""

    async def _all(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        async with self._connector.pool.connection() as link:
            return await (await link.execute(query, values)).fetchall()

    async def _look(self) -> None:
        while True:
            with suppress(*_AWAY):
                await self._look_once()
            await asyncio.sleep(self._lease.heartbeat)

    async def _look_once(self) -> None:
        rows = await self._all(
            "SELECT status::text, count(*) FROM procrastinate_jobs WHERE queue_name <> %s"
            " AND status IN ('todo', 'doing') GROUP BY status",
            CARE,
        )
        found = dict(rows)
        self._seen = {"waiting": found.get("todo", 0), "running": found.get("doing", 0)}

    # Maintenance

    def _add_care(self) -> None:
        self._add_periodic(f"* * * * * */{self._lease.look}", CARE, self._rescue)

    def _add_periodic(self, cron: str, kind: str, work: Callable[[int], Awaitable[None]]) -> None:
        self._periodic.append(kind)
        task = self._app.task(name=kind, queue=kind, priority=FIRST, queueing_lock=kind)(work)
        self._app.periodic(cron=cron, periodic_id=kind)(task)

    async def _rescue(self, timestamp: int) -> None:  # noqa: ARG002 - when it was due
        """Put the jobs of silent processes back into the queue; a job that was started too often fails."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._lease.silence):
            try:
                if job.queue in self._periodic:  # the next period requests it again
                    await manager.finish_job(job, Status.FAILED, delete_job=True)
                elif job.attempts >= MOST_BEGUN:
                    await manager.finish_job(job, Status.FAILED, delete_job=False)
                    self._ended["failed"] += 1
                else:
                    await manager.retry_job(job)
                    self._ended["taken_over"] += 1
            except ProcrastinateException as error:  # another process was faster
                log.debug("jobs: %s", _line(error))
        given_up = await self._all(f"DELETE FROM procrastinate_jobs WHERE {_GIVEN_UP} RETURNING id")
        self._ended["superseded"] += len(given_up)

    # For an operator

    async def kept(self, state: str = "") -> list[Kept]:
        """Return the jobs in the database, the next one first; with `state`, only jobs in that state."""
        rows = await self._all(
            "SELECT id, task_name, lock, status::text, priority, attempts FROM procrastinate_jobs"
            f" WHERE queue_name <> %s AND NOT {_GIVEN_UP} ORDER BY priority DESC, id",
            CARE,
        )
        found = [
            Kept(number, kind, _key(lock or ""), NAMES.get(status, status), need, attempts)
            for number, kind, lock, status, need, attempts in rows
        ]
        return [job for job in found if state in ("", job.state)]

    async def retry(self, number: int) -> bool:
        """Let a failed job wait again. Returns whether the job exists."""
        rows = await self._all(
            f"SELECT id FROM procrastinate_jobs WHERE id = %s AND status = 'failed' AND NOT {_GIVEN_UP}", number
        )
        for (found,) in rows:
            await self._app.job_manager.retry_job_by_id_async(found, retry_at=datetime.now(UTC))
        return bool(rows)

    async def drop(self, number: int) -> bool:
        """Delete a job that is not running. Returns whether the job exists."""
        gone = "DELETE FROM procrastinate_jobs WHERE id = %s AND status <> 'doing' RETURNING id"
        return bool(await self._all(gone, number))

    async def forget(self, hours: int) -> None:
        """Delete jobs that failed or were cancelled this many hours ago, or have waited that long with their data."""
        await self._app.job_manager.delete_old_jobs(
            hours, include_failed=True, include_cancelled=True, include_aborted=True
        )
        await self._all(
            "DELETE FROM procrastinate_jobs AS jobs USING job_loads WHERE job_loads.job = jobs.id"
            " AND jobs.status = 'todo' AND asked < now() - make_interval(hours => %s) RETURNING id",
            hours,
        )


def _settings(url: str) -> dict[str, Any]:
    """Return the connection settings that the URL does not set itself."""
    settings = {"application_name": "everlong jobs", "connect_timeout": 10}
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {name: value for name, value in settings.items() if name not in given}


def _make_ready(url: str) -> None:
    with psycopg.connect(url, autocommit=True, **_settings(url)) as link:
        make_tables(link)


async def _find_tables(link: psycopg.AsyncConnection[Any]) -> None:
    """Let a new connection find the tables in our schema."""
    await link.execute("SELECT set_config('search_path', 'everlong, pg_catalog', false)")
    await link.commit()


def _name(key: str) -> str:
    """Return a key as text that Postgres accepts: the name of a thread may contain any character."""
    return quote(bytes_of(key), safe=" !$&'()*+,/:;=?@[]")


def _key(name: str) -> str:
    return unquote_to_bytes(name).decode("utf-8", "surrogatepass")


def _line(error: BaseException) -> str:
    """Return the error as one line, without the details, which quote rows."""
    cause = error.__cause__ if isinstance(error, ProcrastinateException) and error.__cause__ else error
    return (" ".join(str(cause).split()) or type(cause).__name__)[:200]
