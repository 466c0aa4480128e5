"""Schedule summaries in the background: started when due or requested, one at a time for each thread.

Each is written from a snapshot while the thread continues, and is stored only if nothing overtook it. Every attempt is
a pair of events, its start and exactly one outcome, and a usage record for each author that was asked. A summary starts
at the end of a turn; in the middle of a tool loop only just before a compaction. There is one attempt for each
compaction, whatever its outcome; if all authors are paused, rules write the summary.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from everlong.core import Event, EventKind, expect
from everlong.engine.contracts import Call, Model, Prepared
from everlong.engine.engine import Engine
from everlong.engine.events import Journal
from everlong.engine.requests.situation import asks_model
from everlong.engine.settings import Settings
from everlong.engine.summaries.attempts import Past, attempt_data, past_of
from everlong.engine.summaries.author import (
    Author,
    OwnModel,
    Watcher,
    Written,
    by_rules,
    expect_authors,
    own_authors,
    write_summary,
)
from everlong.engine.summaries.carriage import Asked, Background, Carrier, asked_in, packed
from everlong.engine.summaries.commit import Outcome, commit_summary
from everlong.engine.summaries.due import AGAIN_AFTER, is_due, is_due_when_idle, style_of
from everlong.engine.summaries.snapshot import Snapshot, Wanted, policy_of, snapshot_of
from everlong.engine.thread import CallContext, EngineContext, work_on
from everlong.engine.turn import whole
from everlong.engine.usage import FOR_SUMMARIES
from everlong.errors import EverlongError, NoThread
from everlong.jobs import URGENT, End, Job, LocalJobs
from everlong.summarize import Style, redacted

__all__ = ["CANCELLED", "Outcome", "Summaries"]

NOT_DUE = Outcome(EventKind.SUMMARY_SKIPPED, "not due")
NOTHING_NEW = "nothing worth a summary since the last one"
CANCELLED = "cancelled by hand"
TAKEN_OVER = "another process took it over"
GIVEN_UP = Outcome(EventKind.SUMMARY_SKIPPED, "given up before it began")
ASKED_FOR = Outcome(EventKind.SUMMARY_SKIPPED, "requested")
LOOK = "look"  # the kind of work that checks whether a summary is due, and writes it if no other process can
IDLE_LOOK = "look when idle"
ASK_AGAIN = 120.0  # seconds after which a job that nobody did is requested again
IDLE = 0.8  # of the time after which a provider drops a cached prefix
REMEMBERED = 1_024  # threads whose attempts need not be read again


class Summaries:
    """Writes summaries in the background for the threads of one engine.

    - `authors`: the models to ask, in this order.
    - `own_model`: whether to ask the model of the conversation after them; or a function that names models at its
      endpoint.
    - `style`: the style of summary; by default the one of each thread's preset.
    - `watch`: a function that is called with the thread and the text of a summary as it arrives.
    - `background`: the jobs that other processes may take over; by default summaries are written in this process.
    """

    def __init__(
        self,
        engine: Engine,
        authors: Sequence[Author] = (),
        *,
        style: Style | None = None,
        own_model: OwnModel = True,
        watch: Callable[[str, str], None] | None = None,
        background: Background | None = None,
    ) -> None:
        expect("engine", engine, Engine, "an engine, such as Engine(open_store('chat.db'))")
        expect_authors(authors)
        self._engine = engine
        self._authors = tuple(authors)
        self._style = style
        self._own_model = own_model
        self._watch = watch
        background = background or Background(LocalJobs())
        self._claim = background.claim
        self._jobs, self._carrier, self._kind = background.jobs, background.carrier, background.summaries
        self._mine: set[asyncio.Future[Outcome | None]] = set()
        self._active: set[asyncio.Task[Any]] = set()
        self._running: Counter[str] = Counter()
        self._writing: dict[str, asyncio.Task[Written]] = {}
        self._cancelled: set[str] = set()
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._asked: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._pasts: OrderedDict[str, Past] = OrderedDict()
        if self._carrier is not None:
            self._jobs.handle(self._kind, self._work)
        engine.after_turn.append(self.after_turn)

    def after_turn(self, prepared: Prepared, model: Model) -> None:
        """Start a summary after a turn if one is due, or check again when the running one is done. Returns at once."""
        thread = prepared.thread
        self._start(thread, partial(self._consider, prepared, model))
        self._stop_waiting(thread)
        seconds = IDLE * self._engine_context.settings.cache_seconds
        self._waiting[thread] = asyncio.get_running_loop().call_later(seconds, self._idle, prepared, model)

    async def compact(self, thread: str, call: Call, model: Model, *, focus: str = "") -> Outcome:
        """Write a summary now, with an optional focus. Waits first for one that is already being written."""
        work = partial(self._by_hand, thread, _to(call, model), model, focus)
        return await self._start(thread, work, need=URGENT) or GIVEN_UP

    async def resume(self, thread: str, call: Call, model: Model) -> bool:
        """Start a summary again that a crash interrupted. Returns whether there was such a summary."""
        if self.running(thread) or not await asyncio.to_thread(self._close_abandoned, thread):
            return False
        if not self.running(thread):
            wanted = Wanted(reason="interrupted earlier", style=self._chosen(await self._settings(thread)))
            self._start(thread, partial(self._run, thread, _to(call, model), model, wanted))
        return True

    def running(self, thread: str) -> bool:
        """Return whether a summary of the thread is being written in this process."""
        return self._running[thread] > 0

    def cancel(self, thread: str) -> bool:
        """Cancel the summary that is being written. Returns whether there was one. The thread does not change.

        No other summary starts automatically for the same compaction. A summary that is already complete is stored.
        """
        if not self.running(thread):
            return False
        self._cancelled.add(thread)
        writing = self._writing.get(thread)
        if writing is not None:
            writing.cancel()
        return True

    def may_begin(self, thread: str, model: Model, name: str) -> bool:
        """Return whether a summary would start automatically when one is due. Reads the store."""
        settings, state = self._engine_context.settings_of(thread), self._engine_context.state(thread)
        if not asks_model(settings, state) or not self._all_authors(model, name):
            return False
        past = self._past(thread)
        return past.awaits is None or self._engine_context.threads.thread(thread).points > past.awaits

    async def drain(self) -> None:
        """Wait until no summary is running. Call it before the program ends."""
        for thread in list(self._waiting):
            self._stop_waiting(thread)
        while pending := self._mine | self._active:
            await asyncio.wait(pending)

    @property
    def _engine_context(self) -> EngineContext:
        return self._engine.blocking.context

    async def _settings(self, thread: str) -> Settings:
        return await asyncio.to_thread(self._engine_context.settings_of, thread)

    def _chosen(self, settings: Settings) -> Style:
        return self._style or style_of(settings)

    def _start(
        self, thread: str, work: Callable[[], Awaitable[Outcome]], *, kind: str = LOOK, need: int = 0
    ) -> "asyncio.Future[Outcome | None]":
        """Do work on a thread in this process; a new check replaces a check that waits."""
        self._running[thread] += 1
        done = self._jobs.here(kind, thread, partial(self._follow, work), need=need, replace=not need)
        self._mine.add(done)
        done.add_done_callback(partial(self._done, thread))
        return done

    async def _follow(self, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Do work that `drain` waits for, even if its caller no longer waits."""
        task = asyncio.current_task()
        assert task is not None, "jobs run as tasks"
        self._active.add(task)
        try:
            return await work()
        finally:
            self._active.discard(task)

    def _done(self, thread: str, done: "asyncio.Future[Outcome | None]") -> None:
        self._mine.discard(done)
        self._cancelled.discard(thread)
        self._running[thread] -= 1
        if not self._running[thread]:
            del self._running[thread]

    def _stop_waiting(self, thread: str) -> None:
        timer = self._waiting.pop(thread, None)
        if timer is not None:
            timer.cancel()

    def _idle(self, prepared: Prepared, model: Model) -> None:
        """Check whether to summarise an idle thread, just before the provider drops the cached prefix."""
        self._waiting.pop(prepared.thread, None)
        self._start(prepared.thread, partial(self._consider, prepared, model, idle=True), kind=IDLE_LOOK)

    async def _consider(self, prepared: Prepared, model: Model, *, idle: bool = False) -> Outcome:
        try:
            settings = await self._settings(prepared.thread)
            style = self._chosen(settings)
            if not await asyncio.to_thread(self._due, prepared, model, settings, style, idle):
                return NOT_DUE
            if self._carrier is not None and await self._ask(prepared, model, self._carrier, idle):
                return ASKED_FOR
        except EverlongError as error:  # the store cannot be reached; the next turn checks again
            return Outcome(EventKind.SUMMARY_FAILED, str(error))
        call = replace(_to(prepared.call, model), parent=prepared.turn)
        wanted = Wanted(reason="idle" if idle else "due", style=style, at_once=idle, sent=prepared)
        return await self._run(prepared.thread, call, model, wanted)

    async def _ask(self, prepared: Prepared, model: Model, carrier: Carrier, idle: bool) -> bool:
        """Request the summary from all processes, once for each compaction.

        Returns whether another process can write it.
        """
        state = self._engine_context.threads.thread(prepared.thread)
        points, now = state.points, asyncio.get_running_loop().time()
        last = self._asked.get(prepared.thread)
        if last is not None and last[0] == points and now - last[1] < ASK_AGAIN:
            return True
        carried = await asyncio.to_thread(carrier.pack, prepared, model)
        if carried is None:
            return False
        asked = Asked(rows=state.length, points=points, idle=idle)
        need = max(0, min(99, 100 * prepared.tokens // max(1, prepared.limit)))
        await self._jobs.ask(Job(kind=self._kind, key=carried.key, load=packed(asked, carried.load), need=need))
        self._asked[prepared.thread] = (points, now)
        self._asked.move_to_end(prepared.thread)
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return True

    async def _work(self, job: Job) -> End:
        """Write a summary that this or another process requested, unless the thread continued without it."""
        assert self._carrier is not None, "jobs are taken where threads can be opened"
        asked, load = asked_in(job.load)
        try:
            async with self._carrier.open(job.key, load) as taken:
                if taken is None:
                    return End.SUPERSEDED
                work = partial(self._taken, taken.thread, taken.call, taken.model, asked, again=job.attempt > 0)
                outcome = await self._start(taken.thread, work, need=URGENT)
        except NoThread:
            return End.SUPERSEDED
        return End.SUPERSEDED if outcome is None or outcome.kind is EventKind.SUMMARY_SKIPPED else End.DONE

    async def _taken(self, thread: str, call: Call, model: Model, asked: Asked, *, again: bool) -> Outcome:
        """Write the requested summary. `again`: a process died while writing it; its attempt is closed first."""
        if again:
            await asyncio.to_thread(self._close_abandoned, thread)
        if await asyncio.to_thread(self._overtaken, thread, asked):
            return NOT_DUE
        style = self._chosen(await self._settings(thread))
        wanted = Wanted(reason="idle" if asked.idle else "due", style=style, at_once=asked.idle, leased=True)
        return await self._attempt(thread, _to(call, model), model, wanted)

    def _overtaken(self, thread: str, asked: Asked) -> bool:
        """Whether there was a compaction or another attempt since the summary was requested."""
        return (
            self._engine_context.threads.thread(thread).points > asked.points or self._past(thread).rows >= asked.rows
        )

    def _due(self, prepared: Prepared, model: Model, settings: Settings, style: Style, idle: bool) -> bool:
        if not settings.summarises or not self._all_authors(model, prepared.call.model):
            return False
        if settings.rules.summary.needs_window and not prepared.window.known:
            return False
        engine = self._engine_context
        if not (is_due_when_idle if idle else is_due)(engine, prepared, settings, style):
            return False
        state = engine.state(prepared.thread)
        if not asks_model(settings, state):
            return False
        past, thread = self._past(prepared.thread), engine.threads.thread(prepared.thread)
        if past.awaits is not None:
            for_compactions = not (settings.rules.every_call or policy_of(settings, style).by_count)
            if thread.points <= past.awaits if for_compactions else thread.length < past.rows + AGAIN_AFTER:
                return False
        authors = self._all_authors(model, prepared.call.model)
        return not settings.rules.every_call or bool(past.may_ask(authors, thread.length))

    async def _by_hand(self, thread: str, call: Call, model: Model, focus: str) -> Outcome:
        style = self._chosen(await self._settings(thread))
        wanted = Wanted(reason="requested", style=style, focus=redacted(focus.strip()), by_hand=True)
        return await self._run(thread, call, model, wanted)

    async def _run(self, thread: str, call: Call, model: Model, wanted: Wanted) -> Outcome:
        """Make one attempt. A failure of the store is an outcome too: the next turn checks again."""
        try:
            return await self._attempt(thread, call, model, wanted)
        except EverlongError as error:
            return Outcome(EventKind.SUMMARY_FAILED, str(error))

    async def _attempt(self, thread: str, call: Call, model: Model, wanted: Wanted) -> Outcome:
        """Make one attempt. Once it has started, it gets exactly one outcome, even if the program ends first."""
        written = Written(summary=None, reasons=("cancelled",))
        begun: Snapshot | Outcome = NOT_DUE
        recorded = False
        try:
            begun = await whole(asyncio.to_thread(self._begin, thread, call, wanted))
            if isinstance(begun, Outcome):
                return begun
            authors = self._all_authors(model, call.model, begun.window)
            past = Past() if wanted.by_hand else await asyncio.to_thread(self._past, thread)
            rested = past.may_ask(authors, begun.length)
            if rested or not authors:
                written = await self._write(thread, write_summary(begun.task, rested, self._watcher(thread)))
            else:
                written = Written(summary=None, reasons=(past.excuse(authors, begun.length),))
            recorded = True
            cancelled = written.reasons == (CANCELLED,)
            return await whole(asyncio.to_thread(self._end, thread, call, begun, written, given_up=cancelled))
        finally:
            if isinstance(begun, Snapshot) and not recorded:
                self._end(thread, call, begun, written, given_up=True)

    async def _write(self, thread: str, work: Coroutine[None, None, Written]) -> Written:
        """Wait until a summary is written or cancelled."""
        writing = self._writing[thread] = asyncio.create_task(work, name=f"words of the summary of {thread}")
        if thread in self._cancelled:
            writing.cancel()
        try:
            return await writing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():  # the program is ending
                raise
            return Written(summary=None, reasons=(CANCELLED,))
        finally:
            del self._writing[thread]

    def _all_authors(self, model: Model, name: str, window: int | None = None) -> tuple[Author, ...]:
        return (*self._authors, *own_authors(self._own_model, model, name, window))

    def _past(self, thread: str) -> Past:
        """Return the outcomes of earlier attempts, also of other processes."""
        return self._remember(thread, past_of(self._engine_context.threads, thread, self._pasts.get(thread)))

    def _remember(self, thread: str, past: Past) -> Past:
        self._pasts[thread] = past
        self._pasts.move_to_end(thread)
        while len(self._pasts) > REMEMBERED:
            self._pasts.popitem(last=False)
        return past

    def _watcher(self, thread: str) -> Watcher | None:
        return None if self._watch is None else partial(self._watch, thread)

    def _call_context(self, thread: str, call: Call, journal: Journal, event: str) -> CallContext:
        return work_on(self._engine_context, self._engine_context.state(thread), call, journal, event)

    def _begin(self, thread: str, call: Call, wanted: Wanted) -> Snapshot | Outcome:
        """Take the snapshot and record the start; for a request by hand, even if there is nothing to summarise."""
        with self._engine_context.states.lock(thread), self._engine_context.journal(thread) as journal:
            context = self._call_context(thread, call, journal, call.parent)
            snapshot = snapshot_of(context, wanted)
            if not wanted.by_hand and (snapshot is None or not (wanted.leased or self._claim(thread))):
                return NOT_DUE
            before = None if snapshot is None else context.budget.true(snapshot.before)
            started = journal.note(
                EventKind.SUMMARY_STARTED,
                parent=call.parent,
                model=call.model,
                reason=wanted.reason,
                tokens_before=before,
            )
            if snapshot is not None:
                return replace(snapshot, started=started)
            journal.note(EventKind.SUMMARY_SKIPPED, parent=started, model=call.model, reason=NOTHING_NEW)
            return Outcome(EventKind.SUMMARY_SKIPPED, NOTHING_NEW)

    def _end(self, thread: str, call: Call, snapshot: Snapshot, written: Written, *, given_up: bool = False) -> Outcome:
        """Commit the summary if allowed, and record the outcome."""
        engine = self._engine_context
        try:
            with engine.states.lock(thread), engine.journal(thread) as journal:
                _note_usage(journal, snapshot, written)
                if all(event.id != snapshot.started for event in engine.threads.unfinished(thread)):
                    return Outcome(EventKind.SUMMARY_SKIPPED, TAKEN_OVER)
                if given_up:
                    by_hand = written.reasons == (CANCELLED,)
                    kind = EventKind.SUMMARY_SKIPPED if by_hand else EventKind.SUMMARY_FAILED
                    outcome = Outcome(kind, "; ".join(written.reasons))
                else:
                    outcome = self._commit(
                        self._call_context(thread, call, journal, snapshot.started), snapshot, written
                    )
                points = engine.threads.thread(thread).points if outcome.awaits else None
                _note_outcome(journal, call, snapshot, written, outcome, points)
        except EverlongError as error:  # the store cannot be reached: the start stays open, as after a crash
            outcome = Outcome(EventKind.SUMMARY_FAILED, str(error))
            self._remember_lost(thread, snapshot, written)
        return outcome

    def _commit(self, context: CallContext, snapshot: Snapshot, written: Written) -> Outcome:
        summary, reason = written.summary, "; ".join(written.reasons) or "there is no model to write it"
        if summary is None and (snapshot.by_hand or not context.budget.preset.every_call):
            summary = by_rules(snapshot.task, context.budget.counter)
        if summary is None:
            return Outcome(EventKind.SUMMARY_FAILED, reason)
        try:
            outcome = commit_summary(context, snapshot, summary)
        except EverlongError as error:
            return Outcome(EventKind.SUMMARY_FAILED, str(error))
        if outcome.kind is EventKind.SUMMARY_APPLIED and written.summary is None:
            return replace(outcome, reason=f"by rules: {reason}")
        return outcome

    def _remember_lost(self, thread: str, snapshot: Snapshot, written: Written) -> None:
        """Remember the authors' records in memory if the store could not keep them."""
        past = self._pasts.get(thread, Past())
        data = attempt_data(snapshot.length, snapshot.points, written.tried)
        lost = Event(id=past.last, kind=EventKind.SUMMARY_FAILED, time=self._engine_context.clock(), data=data)
        self._remember(thread, past.after(lost))

    def _close_abandoned(self, thread: str) -> bool:
        """Close the starts that a crash left without an outcome; return whether a summary was lost."""
        threads = self._engine_context.threads
        left = [event for event in threads.unfinished(thread) if event.kind is EventKind.SUMMARY_STARTED]
        lost = False
        with self._engine_context.journal(thread) as journal:
            for event in left:
                made = threads.row(thread, event.id) is not None
                lost = lost or not made
                kind = EventKind.SUMMARY_APPLIED if made else EventKind.SUMMARY_FAILED
                journal.note(kind, parent=event.id, model=event.model, reason="interrupted")
        return lost


def _note_usage(journal: Journal, snapshot: Snapshot, written: Written) -> None:
    for author in written.tried:
        if not author.calls:
            continue
        journal.note(
            EventKind.USAGE_RECORDED,
            parent=snapshot.started,
            model=author.name,
            reason=FOR_SUMMARIES,
            tokens_before=author.usage.prompt,
            tokens_after=author.usage.output,
            cost=author.cost,
            data=f'{{"cached":{author.usage.cached},"cache_written":{author.usage.cache_written},"calls":{author.calls}}}',
        )


def _note_outcome(
    journal: Journal, call: Call, snapshot: Snapshot, written: Written, outcome: Outcome, points: int | None
) -> None:
    figures = outcome.figures
    journal.note(
        outcome.kind,
        parent=snapshot.started,
        model=written.author or call.model,
        reason=outcome.reason,
        tokens_before=None if figures is None else figures.before,
        tokens_after=None if figures is None else figures.after,
        cost=written.cost,
        data=attempt_data(snapshot.length, points, written.tried, None if figures is None else figures.messages),
    )


def _to(call: Call, model: Model) -> Call:
    """Return the call with what is known about its model."""
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=call.provider or model.provider)
