"""Summaries beside the conversation, never in its way: when one is begun, and whether it may stand in the end.

At most one at a time for each thread. It is written from a snapshot; when it is done the thread is looked at again, and
what an undo, a branch or another summary overtook is dropped. All that is ever stored is one point, in one append.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace

from everlong.core.events import EventKind
from everlong.core.messages import History, Message, Role, user_text
from everlong.core.points import Point, Withdrawal
from everlong.core.rounds import last_user_index
from everlong.engine.accounts import account_message, account_of, summary_limit
from everlong.engine.calls import Call, Prepared
from everlong.engine.cutting import Cause
from everlong.engine.engine import Engine
from everlong.engine.live import refreshed
from everlong.engine.means import Journal
from everlong.engine.past import Past
from everlong.engine.preparing import cut_now, remember, standing
from everlong.engine.replies import Model
from everlong.engine.summarizing import Author, Task, Written, write_summary
from everlong.engine.work import Work, work_on
from everlong.errors import BudgetImpossible, EverlongError, StoreError
from everlong.relevance.language import language_of
from everlong.summarize.facts import facts_of
from everlong.summarize.rules import summary_by_rules
from everlong.summarize.summary import NO_FACTS, Style, Summary, encode_summary

__all__ = ["Outcome", "Summaries"]

BEGUN_AT = 0.85  # of the high mark
LEAST = 600  # tokens that a summary must be about to be worth its call
GAIN = 0.95  # of what the view took; a summary that leaves more is not worth its point
ROUNDS = 10  # between two rolling summaries
BUFFER_LIMIT, BUFFER_KEPT = 50, 10  # messages of a static buffer, and how many stay when it is emptied
SUMMARY = "summary"  # the reason of a point that was made for one
SPOKEN_BACK = 12  # user messages that decide the language


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: applied, skipped or failed, and why."""

    kind: EventKind
    reason: str = ""
    summary: Summary | None = None


NOT_DUE = Outcome(EventKind.SUMMARY_SKIPPED, "not due")


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What a summary is written from, and how the thread looked then."""

    task: Task
    length: int
    before: int
    covers: int
    started: str
    by_hand: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """Why a summary is begun, what it should keep in view, and whether a person waits for it."""

    reason: str
    focus: str = ""
    by_hand: bool = False


class Summaries:
    """Writes summaries for the threads of one engine.

    `authors` are asked in their order; after them, unless `own_model` is off, the model of the conversation itself.
    """

    def __init__(
        self, engine: Engine, authors: Sequence[Author] = (), *, style: Style = "structured", own_model: bool = True
    ) -> None:
        self._engine = engine
        self._authors = tuple(authors)
        self._style: Style = style
        self._own_model = own_model
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        engine.after_turn.append(self.after_turn)

    def after_turn(self, prepared: Prepared, model: Model) -> None:
        """A turn is over: begin a summary if one is due. Returns at once."""
        if prepared.thread not in self._running:
            self._start(prepared.thread, self._considered(prepared, model))

    async def compact(self, thread: str, call: Call, model: Model, *, focus: str = "") -> Outcome:
        """Someone asks for it: a summary now, with what it should keep in view. One that runs is waited for first."""
        while (running := self._running.get(thread)) is not None:
            await asyncio.wait([running])
        return await self._start(thread, self._run(thread, _to(call, model), model, Wanted("asked for", focus, True)))

    async def resume(self, thread: str, call: Call, model: Model) -> None:
        """Go on with what a crash interrupted, if it left anything; returns when it is under way."""
        if thread not in self._running and await asyncio.to_thread(self._abandoned, thread):
            self._start(thread, self._run(thread, _to(call, model), model, Wanted("interrupted before")))

    def running(self, thread: str) -> bool:
        """Whether a summary of the thread is being written."""
        return thread in self._running

    async def drain(self) -> None:
        """Wait until nothing is running: before the program ends."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    def _start(self, thread: str, work: Coroutine[None, None, Outcome]) -> "asyncio.Task[Outcome]":
        running = asyncio.create_task(work)
        self._running[thread] = running
        running.add_done_callback(lambda _: self._running.pop(thread, None))
        return running

    async def _considered(self, prepared: Prepared, model: Model) -> Outcome:
        if not await asyncio.to_thread(self._due, prepared):
            return NOT_DUE
        call = _to(prepared.call, model)
        return await self._run(prepared.thread, replace(call, parent=prepared.turn), model, Wanted("it is due"))

    def _due(self, prepared: Prepared) -> bool:
        means = self._engine.blocking.means
        settings = means.settings.for_thread(means.threads.thread(prepared.thread).settings)
        if settings.mode != "auto" or not (self._authors or self._own_model):
            return False
        match self._style:
            case "rolling":
                return sum(bool(user_text(message)) for message in self._uncovered(prepared.thread)) >= ROUNDS
            case "buffer":
                return len(self._uncovered(prepared.thread)) > BUFFER_LIMIT
            case _:
                room = prepared.budget.room
                return prepared.tokens - prepared.budget.tools >= BEGUN_AT * prepared.budget.high * room

    def _uncovered(self, thread: str) -> History:
        """The messages that no summary covers yet."""
        account = account_of(self._engine.threads, thread)
        rows = self._engine.threads.read(thread, 0 if account is None else account.covers)
        return tuple(row.entry for row in rows if isinstance(row.entry, Message))

    async def _run(self, thread: str, call: Call, model: Model, wanted: Wanted) -> Outcome:
        snapshot = await asyncio.to_thread(self._snapshot, thread, call, wanted)
        if isinstance(snapshot, Outcome):
            return snapshot
        outcome = Outcome(EventKind.SUMMARY_FAILED, "cancelled")
        written = Written(summary=None)
        try:
            authors = (*self._authors, *((Author(model=model, name=call.model),) if self._own_model else ()))
            written = await write_summary(snapshot.task, authors)
            outcome = await asyncio.to_thread(self._applied, thread, call, snapshot, written)
        except EverlongError as error:
            outcome = Outcome(EventKind.SUMMARY_FAILED, str(error))
        finally:
            self._tell(thread, call, snapshot, written, outcome)
        return outcome

    def _snapshot(self, thread: str, call: Call, wanted: Wanted) -> _Snapshot | Outcome:
        """What there is to summarise now; nothing, in one event pair, if it is not worth it."""
        means = self._engine.blocking.means
        with means.lives.lock(thread), means.journal(thread) as journal:
            started = journal.note(
                EventKind.SUMMARY_STARTED, parent=call.parent, model=call.model, reason=wanted.reason
            )
            work = work_on(means, refreshed(means.threads, thread, means.lives.get(thread)), call, journal, started)
            view = standing(work)
            previous = account_of(means.threads, thread)
            said = _uncovered_in(work.past(), 0 if previous is None else previous.covers)
            covered = self._leaving(tuple(message for _, message in said))
            if work.sizes.counter.messages(covered) < LEAST:
                why = "nothing worth a summary since the last one"
                journal.note(EventKind.SUMMARY_SKIPPED, parent=started, model=call.model, reason=why)
                return Outcome(EventKind.SUMMARY_SKIPPED, why)
            covers = said[len(covered) - 1][0] + 1
            task = Task(
                covered=covered,
                previous=previous,
                style=self._style,
                language=_language(covered),
                limit=summary_limit(work.sizes.cut_limit),
                focus=wanted.focus,
                prefix=_before_last_round(view.messages),
                prefix_author=call.model,
            )
            return _Snapshot(task, work.live.opened.thread.length, view.tokens, covers, started, wanted.by_hand)

    def _leaving(self, said: History) -> History:
        """What a summary is to cover: all but the last round, or but what a static buffer keeps."""
        newest = last_user_index(said)
        if self._style == "buffer":
            kept = said[: max(0, len(said) - BUFFER_KEPT) + 1]
            newest = last_user_index(kept)
        return said[:newest] if newest else said

    def _applied(self, thread: str, call: Call, snapshot: _Snapshot, written: Written) -> Outcome:
        summary = written.summary
        if summary is None and snapshot.by_hand:
            previous = snapshot.task.previous
            facts = facts_of(snapshot.task.covered, NO_FACTS if previous is None else previous.facts)
            summary = summary_by_rules(facts, snapshot.task.language, style=self._style)
        if summary is None:
            return Outcome(EventKind.SUMMARY_FAILED, "; ".join(written.reasons) or "no author")
        summary = replace(summary, covers=snapshot.covers)
        means = self._engine.blocking.means
        with means.lives.lock(thread), means.journal(thread) as journal:
            if self._overtaken(thread, snapshot.length):
                return Outcome(EventKind.SUMMARY_SKIPPED, "the thread was changed meanwhile")
            return _committed(self._engine, thread, call, journal, snapshot, summary)

    def _overtaken(self, thread: str, length: int) -> bool:
        """Whether an undo or another summary came since; new messages and plain cuts do no harm."""
        for row in self._engine.threads.read(thread, length):
            if isinstance(row.entry, Withdrawal):
                return True
            if isinstance(row.entry, Point) and row.entry.reason == SUMMARY:
                return True
        return False

    def _tell(self, thread: str, call: Call, snapshot: _Snapshot, written: Written, outcome: Outcome) -> None:
        means = self._engine.blocking.means
        with means.journal(thread) as journal:
            if written.calls:
                usage = written.usage
                journal.note(
                    EventKind.USAGE_RECORDED,
                    parent=snapshot.started,
                    model=written.author or call.model,
                    reason="summary",
                    tokens_before=usage.prompt,
                    tokens_after=usage.output,
                    cost=written.cost,
                    data=f'{{"cached":{usage.cached},"cache_written":{usage.cache_written},"calls":{written.calls}}}',
                )
            journal.note(
                outcome.kind,
                parent=snapshot.started,
                model=written.author or call.model,
                reason=outcome.reason,
                tokens_before=snapshot.before,
                cost=written.cost,
            )

    def _abandoned(self, thread: str) -> bool:
        """Whether a summary was begun and never ended; it is ended now, as failed."""
        left = [event for event in self._engine.threads.unfinished(thread) if event.kind is EventKind.SUMMARY_STARTED]
        with self._engine.blocking.means.journal(thread) as journal:
            for event in left:
                journal.note(EventKind.SUMMARY_FAILED, parent=event.id, model=event.model, reason="interrupted")
        return bool(left)


def _committed(
    engine: Engine, thread: str, call: Call, journal: Journal, snapshot: _Snapshot, summary: Summary
) -> Outcome:
    means = engine.blocking.means
    work = work_on(means, refreshed(means.threads, thread, means.lives.get(thread)), call, journal, snapshot.started)
    if work.sizes.preset.every_call:
        return _kept_apart(work, snapshot, summary)
    before = standing(work).tokens
    try:
        view = cut_now(work, Cause(reason=SUMMARY, before=before, account=summary), target=_target(work, before))
    except (BudgetImpossible, StoreError) as error:
        return Outcome(EventKind.SUMMARY_FAILED, str(error))
    remember(work, view)
    if view.tokens > GAIN * before:
        point = work.live.opened.point
        if point is not None:
            means.threads.append(thread, [Withdrawal(point.order)])
        return Outcome(EventKind.SUMMARY_SKIPPED, "it would not have saved anything")
    return Outcome(EventKind.SUMMARY_APPLIED, summary=summary)


def _kept_apart(work: Work, snapshot: _Snapshot, summary: Summary) -> Outcome:
    """For a preset that makes every request anew: the point holds the summary alone, the preset says where it goes."""
    message = account_message(summary, work.sizes.counter, snapshot.task.limit)
    point = Point(
        boundary=snapshot.covers,
        summary=(message,),
        reason=SUMMARY,
        focus=summary.focus,
        account=encode_summary(summary),
        model=work.call.model,
    )
    work.means.threads.append(work.thread, [point])
    return Outcome(EventKind.SUMMARY_APPLIED, summary=summary)


def _uncovered_in(past: Past, first: int) -> list[tuple[int, Message]]:
    """The messages from that order on, each with its order; system text is never summarised."""
    pairs = zip(past.orders, past.history, strict=True)
    return [(order, said) for order, said in pairs if order >= first and said.role is not Role.SYSTEM]


def _target(work: Work, before: int) -> int:
    return min(work.sizes.low, before // 2)


def _language(said: History) -> str:
    texts = [text for message in reversed(said) if (text := user_text(message))]
    return language_of(texts[:SPOKEN_BACK])


def _before_last_round(messages: History) -> History:
    """What was sent, without the last question and what followed: a beginning that the provider has cached."""
    newest = last_user_index(messages)
    return messages[:newest] if newest else ()


def _to(call: Call, model: Model) -> Call:
    """The call with what is known of the model it goes to."""
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=call.provider or model.provider)
