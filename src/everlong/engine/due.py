"""When a summary is begun by itself: as the high mark nears, or as the document of a preset says.

At the end of a turn rather than in the middle; in a tool loop only just before a cut would come without it.
"""

from everlong.compress import preset_named
from everlong.core import Message, head_length, user_text
from everlong.engine.accounts import account_of
from everlong.engine.buffering import buffer_start
from everlong.engine.calls import Prepared
from everlong.engine.live import refreshed
from everlong.engine.means import Means
from everlong.engine.past import reaching
from everlong.engine.settings import DEFAULT_THRESHOLD, Settings
from everlong.engine.sizing import sizes_of
from everlong.summarize import Style

__all__ = ["BY_COUNT", "ROUNDS", "chatbox_mark", "is_due", "is_due_when_idle", "style_of", "switched_on"]

# How far before the high mark: a step of a tool loop, or a turn, and the largest share of the mark. A summary that
# comes too late for a cut is taken along by the next one; a cut that comes too early is paid for.
STEP, TURN = (1_500, 0.05), (2_500, 0.15)
ROUNDS = 10  # between two rolling summaries
#: Styles whose documents count messages and not tokens.
BY_COUNT: frozenset[Style] = frozenset({"rolling", "buffer"})
CHATBOX_RESERVE, CHATBOX_THRESHOLD = 32_000, 0.6
CHATBOX_LEAST = 2  # a window that the reserve would eat keeps half

#: The style that the document of a preset asks for.
STYLES: dict[str, Style] = {
    "nanobot": "rolling",
    "nanobot-v3": "rolling",
    "static-buffer": "buffer",
    "chatbox": "chat",
}
#: Presets whose documents have no summaries unless someone asks for them.
ASKED_FOR = frozenset({"nanobot", "nanobot-v3", "simple"})


def style_of(settings: Settings) -> Style:
    """The style of a thread's summaries where nobody chose one."""
    return STYLES.get(settings.preset, "structured")


def switched_on(settings: Settings) -> bool:
    """Whether summaries are begun by themselves under these settings."""
    if settings.mode != "auto" or settings.preset == "off" or settings.summaries == "off":
        return False
    return settings.summaries == "on" or settings.preset not in ASKED_FOR


def is_due(means: Means, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Whether one should be begun now that the request was answered. Holds no lock: a look, not a decision."""
    if style not in BY_COUNT and means.threads.thread(prepared.thread).points != prepared.cuts:
        return False  # it was cut since: what was sent says nothing of what stands now
    last = next(iter(means.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    match style:
        case "rolling":
            return not in_loop and sum(bool(user_text(said)) for said in _uncovered(means, prepared.thread)) >= ROUNDS
        case "buffer":
            return not in_loop and _evicted(means, prepared.thread)
        case _ if settings.preset == "chatbox":
            return not in_loop and prepared.tokens >= chatbox_mark(prepared.window.context, settings)
        case _:
            live = refreshed(means.threads, prepared.thread, means.lives.get(prepared.thread))
            mark = prepared.budget.high * sizes_of(means, settings, prepared.call, live).room
            tokens, share = STEP if in_loop else TURN
            return prepared.tokens - prepared.budget.tools >= mark - min(tokens, share * mark)


def is_due_when_idle(means: Means, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Whether one should be begun because nobody speaks any more: the next request would pay for a cold cache."""
    thread = means.threads.thread(prepared.thread)
    if style in BY_COUNT or preset_named(settings.preset).every_call or thread.length > prepared.length + 1:
        return False  # or somebody does speak
    last = next(iter(means.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    wanted = prepared.budget.room * prepared.budget.high / settings.threshold
    return not in_loop and prepared.tokens - prepared.budget.tools >= settings.cold_mark * wanted


def chatbox_mark(window: int, settings: Settings) -> int:
    """Tokens from which Chatbox compacts. Example: window 200 000, nothing set -> (200 000 - 32 000) x 0.6 = 100 800"""
    threshold = CHATBOX_THRESHOLD if settings.threshold == DEFAULT_THRESHOLD else settings.threshold
    return round(max(window - CHATBOX_RESERVE, window // CHATBOX_LEAST) * threshold)


def _uncovered(means: Means, thread: str) -> list[Message]:
    """The messages that no summary covers yet."""
    live = refreshed(means.threads, thread, means.lives.get(thread))
    account = account_of(means.threads, thread, live.opened.point)
    rows = means.threads.read(thread, 0 if account is None else account.covers)
    return [row.entry for row in rows if isinstance(row.entry, Message)]


def _evicted(means: Means, thread: str) -> bool:
    """Whether the buffer has let go of messages that no summary covers."""
    live = refreshed(means.threads, thread, means.lives.get(thread))
    past = reaching(means.threads, live.past, live.opened)
    start = buffer_start(past.history)
    account = account_of(means.threads, thread, live.opened.point)
    first = 0 if account is None else account.covers
    return any(order >= first for order in past.orders[head_length(past.history) : start])
