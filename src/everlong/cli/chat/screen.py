"""What a person sees of a turn: the answer block by block, thoughts dimmed, each call on one line.

Complete blocks are printed once; the open block and the running calls are redrawn below them a few times a second. To a
pipe or a file, only the answer is written, line by line, and nothing is drawn twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from everlong.agent import Action, AgentEvent, CallEnded, CallRefused, CallStarted, Entered, Outcome, TurnEnded
from everlong.cli.chat.drawing import Blocks, Tail, call_line, markdown, plain, thought
from everlong.cli.terminal.tables import amount, bar
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import Words
from everlong.core import Event, EventKind, JsonText
from everlong.engine import SUMMARY, CallGrew, Failed, Finished, Meter, Restarted, Said, Thought
from everlong.errors import ContextOverflow

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

__all__ = ["MOST_SHOWN", "CallRecord", "Screen", "call_text", "meter_text"]

REDRAWN = 0.1  # seconds between two drawings of the open part
LONGEST_LINE = 65_536  # characters that wait for the end of their line before they are written to a pipe
MOST_SHOWN = 200_000  # characters of one answer; the rest is in the thread
LOOKED_AT = 2_000  # characters of a result that are searched for its first line
FIRST_LINE = 100
BAR = 12  # columns of the meter
NEARLY_FULL = 0.8  # of the window; above it the meter warns
SPARE_LINES = 4  # of the terminal that stay free below the open part
GLANCE = 40  # lines of a diff that is shown without a question
#: The colours of a diff, by the first sign of a line.
DIFF = {"+": "green", "-": "red", "@": "cyan"}
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: The text and the colour of each kind of event that is shown.
NOTICES: dict[EventKind, tuple[str, str]] = {
    EventKind.CONTEXT_COMPRESSED: ("notice_cut", "cyan"),
    EventKind.CONTEXT_RESTORED: ("notice_restored", "cyan"),
    EventKind.CONTEXT_WARNED: ("notice_warned", "yellow"),
    EventKind.SUMMARY_STARTED: ("notice_summary_started", "dim"),
    EventKind.SUMMARY_APPLIED: ("notice_summary", "cyan"),
    EventKind.SUMMARY_SKIPPED: ("notice_summary_skipped", "dim"),
    EventKind.SUMMARY_FAILED: ("notice_summary_failed", "yellow"),
    EventKind.OVERFLOW_DETECTED: ("notice_overflow", "yellow"),
    EventKind.OVERFLOW_RECOVERED: ("notice_recovered", "cyan"),
    EventKind.WINDOW_LEARNED: ("notice_learned", "yellow"),
    EventKind.REPLY_SHORTENED: ("notice_shortened", "yellow"),
    EventKind.RECALLED: ("notice_recalled", "cyan"),
}


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call and its outcome, for `/show`."""

    name: str
    arguments: JsonText
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _RunningCall:
    number: int
    line: str
    begun: float


class Screen:
    """Draws the events of turns. `calls` are the calls of this chat in order."""

    def __init__(self, out: "Console", say: Words, *, aside: "Console | None" = None) -> None:
        self.out, self.say = out, say
        #: The console for everything except the answer; standard error if the answer goes to a pipe.
        self.aside = aside or out
        self.calls: list[CallRecord] = []
        self.error = ""
        #: Whether errors are shown here; False if the program prints them at its end.
        self.shows_errors = True
        self._blocks = Blocks()
        self._line = ""
        self._thinking = False
        self._shown = 0
        self._running: dict[str, _RunningCall] = {}
        self._waiting_since: float | None = None
        self._live: Live | None = None
        self._drawn = 0.0

    # --- a turn -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a turn, with a spinner until its first word."""
        self.error = ""
        self._shown = 0
        self._waiting_since = monotonic()
        if self.out.is_terminal:
            from rich.live import Live  # noqa: PLC0415 - only on a terminal

            self._live = Live(console=self.out, auto_refresh=False, transient=True, vertical_overflow="crop")
            self._live.start()
            self.draw()

    def end(self) -> None:
        """End a turn, however it ended: print the open part."""
        self._close_block()
        self.pause()
        self._running.clear()
        self._waiting_since = None

    def pause(self) -> None:
        """Stop redrawing, so that the person can be asked."""
        if self._live is not None:
            from rich.text import Text  # noqa: PLC0415

            self._live.update(Text(""))
            self._live.stop()
            self._live = None

    def resume(self) -> None:
        """Continue redrawing."""
        if self._live is None:
            shown, since = self._shown, self._waiting_since
            self.begin()
            self._shown, self._waiting_since = shown, since

    def show(self, event: AgentEvent) -> None:
        """Show an event of a turn."""
        match event:
            case Said(text):
                self._add(text, thinking=False)
            case Thought(text):
                self._add(text, thinking=True)
            case CallGrew() | Entered():
                self._close_block()
            case Restarted(reason):
                self._restarted(reason)
            case CallStarted():
                self._call_started(event)
            case CallRefused() | CallEnded():
                self._call_ended(event)
            case Finished(stop=stop):
                self._finished(stop)
            case Failed(error):
                self._close_block()
                self.fail(str(error), overflow=isinstance(error, ContextOverflow))
            case TurnEnded(reason, steps):
                self._turn_ended(reason, steps)
        self.draw(soon=True)

    def draw(self, *, soon: bool = False) -> None:
        """Redraw the open part; with `soon`, only if enough time has passed since the last time."""
        if self._live is None or (soon and monotonic() - self._drawn < REDRAWN):
            return
        self._drawn = monotonic()
        self._live.update(Tail(self._below(), SPARE_LINES), refresh=True)

    # --- lines ------------------------------------------------------------------------------------

    def note(self, text: str, style: str = "dim") -> None:
        """Print a line that is not part of the answer."""
        self.aside.print(plain(text, style))

    def action(self, action: Action) -> None:
        """Show in full what a tool is about to do; a bar marks each line, because long lines wrap."""
        title = self.say(f"may_{action.kind}", tool=one_line(action.tool), subject=action.subject)
        self.aside.print(plain(title, "bold yellow"), soft_wrap=True)
        if action.hint:
            self.aside.print(plain(f"  {action.hint}", "yellow"), soft_wrap=True)
        for line in action.details.split("\n"):
            style = DIFF.get(line[:1], "") if action.kind == "file" else ""
            self.aside.print(plain(f"│ {line}", style), soft_wrap=True)
        if action.hidden:
            self.aside.print(plain(self.say.many("may_hidden", action.hidden), "bold red"))

    def change(self, action: Action) -> None:
        """Show the beginning of the diff of a change that needs no question."""
        self._close_block()
        title = self.say("changes_file", tool=one_line(action.tool), subject=action.subject)
        self.aside.print(plain(title, "cyan"), soft_wrap=True)
        lines = action.details.split("\n")
        for line in lines[:GLANCE]:
            self.aside.print(plain(f"│ {line}", DIFF.get(line[:1], "")), soft_wrap=True)
        left = max(0, len(lines) - GLANCE) + action.hidden
        if left:
            self.note(f"│ {self.say.many('may_hidden', left)}")

    def fail(self, reason: str, *, overflow: bool = False) -> None:
        """Show an error and what can be done about it."""
        self.error = one_line(reason)
        if not self.shows_errors:
            return
        self.note(f"✗ {self.error}", "bold red")
        if overflow:
            self.note(f"  {self.say('overflow_help')}", "yellow")

    def notices(self, events: Sequence[Event]) -> None:
        """Show what happened to the thread: compactions, summaries, overflows, learned windows, recalls."""
        for event in events:
            notice = _notice(event, self.say)
            if notice is not None:
                text, style = notice
                self.note(f"└ {text}", style)

    def meter(self, meter: Meter | None, model: str) -> None:
        """Print the meter line between two turns."""
        if meter is None:
            return
        figures, name = plain(meter_text(meter, self.say), "dim"), plain(f"  {one_line(model)}", "dim")
        style = "yellow" if meter.known and meter.tokens >= NEARLY_FULL * meter.limit else "green"
        with_bar = plain(f"{_meter_bar(meter)}  ", style).append_text(figures)
        forms = (with_bar.copy().append_text(name), with_bar, figures)  # the figures matter most
        line = next((form for form in forms if form.cell_len <= self.aside.width), figures)
        self.aside.print(line, no_wrap=True, overflow="ellipsis")

    # --- the open part ---------------------------------------------------------------------------

    def _add(self, text: str, *, thinking: bool) -> None:
        if thinking is not self._thinking:
            self._close_block()
            if not thinking and self.out.is_terminal:
                self.out.print()
            self._thinking = thinking
        self._waiting_since = None
        if not self.out.is_terminal:
            self._write(text)
            return
        room = MOST_SHOWN - self._shown
        if room <= 0:
            return
        self._shown += len(text)
        for block in self._blocks.add(text[:room]):
            self._print_block(block)
        if self._shown >= MOST_SHOWN:
            self._close_block()
            self.note(self.say("more_not_shown"), "yellow")

    def _write(self, text: str) -> None:
        """Write the answer to a pipe, in complete lines and without thoughts."""
        if self._thinking:
            return
        lines, end, self._line = (self._line + text).rpartition("\n")
        if len(self._line) > LONGEST_LINE:
            lines, end, self._line = lines + end + self._line, "", ""
        if lines or end:
            self.out.print(plain(lines), soft_wrap=True, end=end)

    def _close_block(self) -> None:
        if self._line:
            self._write("\n")
        block = self._blocks.end()
        if block:
            self._print_block(block)
        self._blocks = Blocks()

    def _print_block(self, block: str) -> None:
        if not block.strip():
            return
        if self._live is not None:
            self._live.update(Tail(self._below(), SPARE_LINES))
        self.out.print(thought(block) if self._thinking else markdown(block))
        if not self._thinking:
            self.out.print()

    def _below(self) -> "RenderableType":
        """Return the open part: the open block and the running calls, or the spinner."""
        from rich.console import Group  # noqa: PLC0415 - only on a terminal

        now = monotonic()
        drawn: list[RenderableType] = []
        if self._blocks.open.strip():
            drawn.append(thought(self._blocks.open) if self._thinking else markdown(self._blocks.open))
        sign = SPINNER[int(now / REDRAWN) % len(SPINNER)]
        drawn += [
            self._short(f"{sign} {call.line} · {now - call.begun:.0f} s", "cyan") for call in self._running.values()
        ]
        if not drawn and self._waiting_since is not None:
            waited = f"{sign} {self.say('waiting', seconds=f'{now - self._waiting_since:.0f}')}"
            drawn.append(self._short(waited, "dim"))
        return Group(*drawn)

    def _short(self, text: str, style: str) -> "RenderableType":
        line = plain(text, style)
        line.truncate(max(10, self.out.width - 1), overflow="ellipsis")
        return line

    def _restarted(self, reason: str) -> None:
        """Say that the answer starts again."""
        self._close_block()
        self.note(self.say("restarted", reason=one_line(reason)), "yellow")
        self._shown = 0

    def _finished(self, stop: str) -> None:
        self._close_block()
        if stop == "length":
            self.note(self.say("stopped_at_length"), "yellow")
        self._waiting_since = monotonic()

    def _call_started(self, event: CallStarted) -> None:
        self._close_block()
        self.calls.append(CallRecord(event.name, event.arguments, Outcome("")))
        line = call_line(event.name, event.arguments)
        self._running[event.call] = _RunningCall(len(self.calls), line, monotonic())

    def _call_ended(self, event: CallRefused | CallEnded) -> None:
        if isinstance(event, CallRefused):
            self._close_block()
            if not event.answered:  # otherwise the person knows
                self.aside.print(plain(one_line(event.reason), "yellow"), soft_wrap=True)  # one line, also in a log
            return
        call = self._running.pop(event.call, None)
        if call is None:
            return
        self.calls[call.number - 1] = replace(self.calls[call.number - 1], outcome=event.outcome)
        text = event.outcome.text
        first = one_line(text[:LOOKED_AT].strip().partition("\n")[0])[:FIRST_LINE]
        lines = self.say.many("lines", text.count("\n") + 1 if text else 0)
        result = first if event.outcome.failed else lines
        sign, style = ("✗", "red") if event.outcome.failed else ("✓", "cyan")
        self.aside.print(self._short(f"{sign} {call.number} {call.line} · {result} · {event.seconds:.1f} s", style))

    def _turn_ended(self, reason: str, steps: int) -> None:
        self._close_block()
        stopped, self._running = [*self._running.values()], {}
        for call in stopped:
            self.aside.print(self._short(f"✗ {call.number} {call.line} · {self.say('interrupted')}", "red"))
        match reason:
            case "interrupted":
                self.note(f"■ {self.say('interrupted')}", "yellow")
            case "most steps" | "most tokens":
                self.note(self.say(reason.replace(" ", "_"), steps=amount(steps)), "yellow")
            case "failed" if not self.error:
                self.fail(self.say("failed"))


def meter_text(meter: Meter, say: Words) -> str:
    """Return a meter in words. Example: 3412 of 8192 tokens, estimated -> "~3,412 / 8,192 tokens · 42 %" """
    used = f"{'' if meter.exact else '~'}{amount(meter.tokens)}"
    if not meter.known:
        return say("meter_unknown", used=used, assumed=amount(meter.limit))
    return say("meter", used=used, limit=amount(meter.limit), percent=str(meter.percent))


def _meter_bar(meter: Meter) -> str:
    """Return a meter as a bar; an unknown window has none."""
    return bar(min(meter.tokens, meter.limit), meter.limit, BAR).ljust(BAR, "·") if meter.known else "?" * 3


def call_text(call: CallRecord, say: Words, most: int) -> str:
    """Return a call with its result, at most `most` characters of each."""
    text = clean(call.outcome.text)
    left = len(text) - most
    shown = text if left <= 0 else f"{text[:most]}\n{say.many('more_characters', left)}"
    return f"{one_line(call.name)} {clean(call.arguments[:most])}\n{shown}"


def _notice(event: Event, say: Words) -> tuple[str, str] | None:
    """Return the line of an event and its colour; None if it is not shown."""
    notice = NOTICES.get(event.kind)
    if notice is None or (event.kind is EventKind.CONTEXT_COMPRESSED and event.reason == SUMMARY):
        return None  # a summary has its own event
    key, style = notice
    if event.kind is EventKind.SUMMARY_APPLIED and event.reason:
        key, style = "notice_summary_by_rules", "yellow"  # the reason says why no model wrote it
    elif event.kind is EventKind.SUMMARY_APPLIED and event.tokens_after is None:
        key = "notice_summary_ready"
    before, after = (("?" if n is None else amount(n)) for n in (event.tokens_before, event.tokens_after))
    return say(key, before=before, after=after, reason=say.reason(one_line(event.reason))), style
