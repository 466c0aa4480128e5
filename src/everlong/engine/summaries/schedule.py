"""Schedule summaries beside the conversation: begun when due or asked for, one at a time for each thread.

Each is written from a snapshot while the thread goes on, and is stored only if nothing overtook it. Every attempt is a
pair of events, its start and exactly one outcome, and a row of usage for each author that was asked. A summary begins
at the end of a turn rather than in the middle; in a tool loop only just before a compaction would come without it.
There is one attempt for a compaction, whatever comes of it; where all authors rest, rules write it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial

from everlong.core import Action, Event, EventKind, Message, Point, expect, expect_list, head_length, user_text
from everlong.engine.budget import counter_for
from everlong.engine.contracts import Call, Model, Prepared
from everlong.engine.engine import Engine
from everlong.engine.events import Journal
from everlong.engine.settings import Settings
from everlong.engine.summaries.attempts import Past, attempt_data, past_of
from everlong.engine.summaries.author import Author, OwnModel, Watcher, Written, by_rules, own_authors, write_summary
from everlong.engine.summaries.commit import SUMMARY, Outcome, commit_summary
from everlong.engine.summaries.snapshot import Snapshot, Wanted, policy_of, snapshot_of
from everlong.engine.thread import CallContext, EngineContext, newest_summary, raw_history, work_on
from everlong.engine.turn import whole
from everlong.engine.usage import FOR_SUMMARIES
from everlong.errors import EverlongError
from everlong.summarize import Style, redacted

__all__ = ["Outcome", "Summaries", "is_due", "is_due_when_idle", "style_of"]

# How far before the threshold: a step of a tool loop, or a turn, and the largest share of what can be moved until
# then. A summary that comes too late for a compaction is taken along by the next one; one that comes too early is paid
# for.
STEP, TURN = (1_500, 0.05), (2_500, 0.15)


def style_of(settings: Settings) -> Style:
    """Return the style of a thread's summaries if nobody chose one."""
    return settings.rules.summary.style


def is_due(engine: EngineContext, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Return whether a summary should begin now that the request was answered. Holds no lock: it only looks."""
    policy = policy_of(settings, style)
    if not policy.by_count and engine.threads.thread(prepared.thread).points != prepared.compactions:
        return False  # it was compacted since: what was sent says nothing about the view now
    last = next(iter(engine.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    if policy.rounds is not None:
        if _forced_out(engine, prepared):
            return True
        questions = sum(bool(user_text(message)) for message in _uncovered(engine, prepared.thread))
        return not in_loop and questions >= policy.rounds
    if policy.evicts_before is not None:
        return not in_loop and _evicted(engine, prepared.thread, policy.evicts_before)
    due = prepared.threshold
    if policy.due is not None:
        return not in_loop and _tokens_now(engine, prepared) >= due and _helps(engine, prepared)
    tokens, share = STEP if in_loop else TURN
    margin = min(tokens, share * (due - prepared.budget.tools - prepared.budget.fixed))
    return prepared.tokens >= due - margin and _is_new(engine, prepared, margin)


def _helps(engine: EngineContext, prepared: Prepared) -> bool:
    """Whether a summary at the document's own figure may help: the newest one brought the request below it, or enough
    is new since.
    """
    new = engine.state(prepared.thread).new_tokens(prepared.counted)
    below = new is None or prepared.counted - new + prepared.budget.tools < prepared.threshold
    return below or _is_new(engine, prepared)


def _is_new(engine: EngineContext, prepared: Prepared, margin: float = 0) -> bool:
    """Whether enough was said since the newest compaction that another may come, or will after `margin` tokens."""
    new = engine.state(prepared.thread).new_tokens(prepared.counted)
    return new is None or new >= prepared.renewal - margin


def _tokens_now(engine: EngineContext, prepared: Prepared) -> int:
    """The tokens of the request with its answer: a finished message counts."""
    said = (row.entry for row in engine.threads.read(prepared.thread, prepared.length))
    return prepared.tokens + counter_for(prepared.call.model).messages(
        tuple(entry for entry in said if isinstance(entry, Message))
    )


def is_due_when_idle(engine: EngineContext, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Return whether a summary should begin because the thread is idle: the next request would find a cold cache."""
    thread = engine.threads.thread(prepared.thread)
    if policy_of(settings, style).by_count or settings.rules.every_call or thread.length > prepared.length + 1:
        return False  # or somebody does speak
    last = next(iter(engine.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    budget = prepared.budget
    wanted = settings.cold_mark * budget.movable * budget.threshold / settings.threshold_share
    if in_loop or prepared.tokens - budget.tools < budget.fixed + wanted:
        return False
    point = engine.state(prepared.thread).opened.point
    plain = point is None or (isinstance(point.entry, Point) and point.entry.reason != SUMMARY)
    return plain or _is_new(engine, prepared)


def _uncovered(engine: EngineContext, thread: str) -> list[Message]:
    """The messages that no summary covers yet."""
    summary = newest_summary(engine.threads, thread, engine.state(thread).opened.point)
    rows = engine.threads.read(thread, 0 if summary is None else summary.covers)
    return [row.entry for row in rows if isinstance(row.entry, Message)]


def _forced_out(engine: EngineContext, prepared: Prepared) -> bool:
    """Whether the request had to leave out messages that no summary covers."""
    summary = newest_summary(engine.threads, prepared.thread, engine.state(prepared.thread).opened.point)
    first = 0 if summary is None else summary.covers
    return any(edit.action is Action.DROP and edit.at >= first for edit in prepared.edits)


def _evicted(engine: EngineContext, thread: str, evicts_before: Callable[[Sequence[Message]], int]) -> bool:
    """Whether the preset no longer sends messages that no summary covers."""
    state = engine.state(thread)
    raw = raw_history(engine.threads, state.opened, state.raw)
    start = evicts_before(raw.history)
    summary = newest_summary(engine.threads, thread, state.opened.point)
    first = 0 if summary is None else summary.covers
    return any(order >= first for order in raw.orders[head_length(raw.history) : start])


NOT_DUE = Outcome(EventKind.SUMMARY_SKIPPED, "not due")
NOTHING_NEW = "nothing worth a summary since the last one"
TAKEN_OVER = "another process took it over"
AGAIN_AFTER = 20  # rows that a thread must grow by after an attempt that came to nothing
IDLE = 0.8  # of the time after which a provider forgets a prefix
REMEMBERED = 1_024  # threads whose attempts need not be read again


class Summaries:
    """Writes summaries for the threads of one engine.

    `authors` are asked in their order; after them, unless `own_model` is off, the model of the conversation itself, or
    the models at its place that a function names.
    Without a `style` each thread has that of its preset. `watch` is called with the words of a summary as they come.
    """

    def __init__(
        self,
        engine: Engine,
        authors: Sequence[Author] = (),
        *,
        style: Style | None = None,
        own_model: OwnModel = True,
        watch: Callable[[str, str], None] | None = None,
    ) -> None:
        expect("engine", engine, Engine, "an engine, such as Engine(open_store('chat.db'))")
        expect_list("authors", authors, "a list of Authors")
        self._engine = engine
        self._authors = tuple(authors)
        self._style = style
        self._own_model = own_model
        self._watch = watch
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._queued: dict[str, tuple[Prepared, Model]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._pasts: OrderedDict[str, Past] = OrderedDict()
        engine.after_turn.append(self.after_turn)

    def after_turn(self, prepared: Prepared, model: Model) -> None:
        """Begin a summary after a turn if one is due, or look again when the one that runs is done. Never waits."""
        thread = prepared.thread
        if thread in self._running:
            self._queued[thread] = (prepared, model)
        else:
            self._start(thread, self._consider(prepared, model))
        self._stop_waiting(thread)
        seconds = IDLE * self._engine_context.settings.cache_seconds
        self._waiting[thread] = asyncio.get_running_loop().call_later(seconds, self._idle, prepared, model)

    async def compact(self, thread: str, call: Call, model: Model, *, focus: str = "") -> Outcome:
        """Write a summary now because someone asks for it, with a focus. One that runs is waited for first."""
        while (running := self._running.get(thread)) is not None:
            await asyncio.wait([running])
        return await self._start(thread, self._by_hand(thread, _to(call, model), model, focus))

    async def resume(self, thread: str, call: Call, model: Model) -> bool:
        """Begin again what a crash interrupted, if it left anything; return whether it did."""
        if thread in self._running or not await asyncio.to_thread(self._close_abandoned, thread):
            return False
        if thread not in self._running:
            wanted = Wanted(reason="interrupted before", style=self._chosen(await self._settings(thread)))
            self._start(thread, self._run(thread, _to(call, model), model, wanted))
        return True

    def running(self, thread: str) -> bool:
        """Return whether a summary of the thread is being written."""
        return thread in self._running

    async def drain(self) -> None:
        """Wait until nothing is running: before the program ends."""
        for thread in list(self._waiting):
            self._stop_waiting(thread)
        while self._running:
            await asyncio.wait(list(self._running.values()))

    @property
    def _engine_context(self) -> EngineContext:
        return self._engine.blocking.context

    async def _settings(self, thread: str) -> Settings:
        return await asyncio.to_thread(self._engine_context.settings_of, thread)

    def _chosen(self, settings: Settings) -> Style:
        return self._style or style_of(settings)

    def _start(self, thread: str, work: Coroutine[None, None, Outcome]) -> "asyncio.Task[Outcome]":
        running = asyncio.create_task(work, name=f"summary of {thread}")
        self._running[thread] = running
        running.add_done_callback(partial(self._done, thread))
        return running

    def _done(self, thread: str, task: "asyncio.Task[Outcome]") -> None:
        """Look at the turn that ended meanwhile."""
        self._running.pop(thread, None)
        queued = self._queued.pop(thread, None)
        if queued is not None and not task.cancelled():
            self._start(thread, self._consider(*queued))

    def _stop_waiting(self, thread: str) -> None:
        timer = self._waiting.pop(thread, None)
        if timer is not None:
            timer.cancel()

    def _idle(self, prepared: Prepared, model: Model) -> None:
        """Nobody spoke for so long that the provider is about to forget the prefix: the last moment to use it."""
        self._waiting.pop(prepared.thread, None)
        running = self._running.get(prepared.thread)
        if running is not None:
            running.add_done_callback(lambda _: self._idle(prepared, model))
        else:
            self._start(prepared.thread, self._consider(prepared, model, idle=True))

    async def _consider(self, prepared: Prepared, model: Model, *, idle: bool = False) -> Outcome:
        try:
            settings = await self._settings(prepared.thread)
            style = self._chosen(settings)
            if not await asyncio.to_thread(self._due, prepared, model, settings, style, idle):
                return NOT_DUE
        except EverlongError as error:  # the store is away; the next turn looks again
            return Outcome(EventKind.SUMMARY_FAILED, str(error))
        call = replace(_to(prepared.call, model), parent=prepared.turn)
        wanted = Wanted(reason="idle" if idle else "it is due", style=style, at_once=idle, sent=prepared)
        return await self._run(prepared.thread, call, model, wanted)

    def _due(self, prepared: Prepared, model: Model, settings: Settings, style: Style, idle: bool) -> bool:
        if not settings.summarises or not self._all_authors(model, prepared.call.model):
            return False
        if settings.rules.summary.needs_window and not prepared.window.known:
            return False
        engine = self._engine_context
        if not (is_due_when_idle if idle else is_due)(engine, prepared, settings, style):
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
        wanted = Wanted(reason="asked for", style=style, focus=redacted(focus.strip()), by_hand=True)
        return await self._run(thread, call, model, wanted)

    async def _run(self, thread: str, call: Call, model: Model, wanted: Wanted) -> Outcome:
        """Make one attempt. Once begun it has one outcome, also when the program ends before it is written."""
        written = Written(summary=None, reasons=("cancelled",))
        begun: Snapshot | Outcome = NOT_DUE
        recorded = False
        try:
            begun = await whole(asyncio.to_thread(self._begin, thread, call, wanted))
            if isinstance(begun, Outcome):
                return begun
            authors = self._all_authors(model, call.model, begun.window)
            past = Past() if wanted.by_hand else await asyncio.to_thread(self._past, thread)
            asked = past.may_ask(authors, begun.length)
            if asked or not authors:
                written = await write_summary(begun.task, asked, self._watcher(thread))
            else:
                written = Written(summary=None, reasons=(past.excuse(authors, begun.length),))
            recorded = True
            return await whole(asyncio.to_thread(self._end, thread, call, begun, written))
        except EverlongError as error:
            return Outcome(EventKind.SUMMARY_FAILED, str(error))
        finally:
            if isinstance(begun, Snapshot) and not recorded:
                self._end(thread, call, begun, written, given_up=True)

    def _all_authors(self, model: Model, name: str, window: int | None = None) -> tuple[Author, ...]:
        return (*self._authors, *own_authors(self._own_model, model, name, window))

    def _past(self, thread: str) -> Past:
        """What came of earlier attempts, also of other processes."""
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
        """Take the snapshot and note the start. By hand it is also noted if there is nothing to summarise."""
        with self._engine_context.states.lock(thread), self._engine_context.journal(thread) as journal:
            snapshot = snapshot_of(self._call_context(thread, call, journal, call.parent), wanted)
            if snapshot is None and not wanted.by_hand:
                return NOT_DUE
            before = None if snapshot is None else snapshot.before
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
        """Commit what was written, if it may be, and note the outcome."""
        engine = self._engine_context
        try:
            with engine.states.lock(thread), engine.journal(thread) as journal:
                _note_usage(journal, snapshot, written)
                if all(event.id != snapshot.started for event in engine.threads.unfinished(thread)):
                    return Outcome(EventKind.SUMMARY_SKIPPED, TAKEN_OVER)
                if given_up:
                    outcome = Outcome(EventKind.SUMMARY_FAILED, "; ".join(written.reasons))
                else:
                    outcome = self._commit(
                        self._call_context(thread, call, journal, snapshot.started), snapshot, written
                    )
                points = engine.threads.thread(thread).points if outcome.awaits else None
                _note_outcome(journal, call, snapshot, written, outcome, points)
        except EverlongError as error:  # the store is away: the start is left behind, as by a crash
            outcome = Outcome(EventKind.SUMMARY_FAILED, str(error))
            self._remember_lost(thread, snapshot, written)
        return outcome

    def _commit(self, context: CallContext, snapshot: Snapshot, written: Written) -> Outcome:
        summary, reason = written.summary, "; ".join(written.reasons) or "there is no author"
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
        """Keep in mind how authors did where the store could not keep it."""
        past = self._pasts.get(thread, Past())
        data = attempt_data(snapshot.length, snapshot.points, written.tried)
        lost = Event(id=past.last, kind=EventKind.SUMMARY_FAILED, time=self._engine_context.clock(), data=data)
        self._remember(thread, past.after(lost))

    def _close_abandoned(self, thread: str) -> bool:
        """Close what a crash left without an outcome; return whether a summary was lost."""
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
    for one in written.tried:
        if not one.calls:
            continue
        journal.note(
            EventKind.USAGE_RECORDED,
            parent=snapshot.started,
            model=one.name,
            reason=FOR_SUMMARIES,
            tokens_before=one.usage.prompt,
            tokens_after=one.usage.output,
            cost=one.cost,
            data=f'{{"cached":{one.usage.cached},"cache_written":{one.usage.cache_written},"calls":{one.calls}}}',
        )


def _note_outcome(
    journal: Journal, call: Call, snapshot: Snapshot, written: Written, outcome: Outcome, points: int | None
) -> None:
    journal.note(
        outcome.kind,
        parent=snapshot.started,
        model=written.author or call.model,
        reason=outcome.reason,
        tokens_before=snapshot.before,
        tokens_after=outcome.tokens,
        cost=written.cost,
        data=attempt_data(snapshot.length, points, written.tried),
    )


def _to(call: Call, model: Model) -> Call:
    """Return the call with what is known of the model it goes to."""
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=call.provider or model.provider)
