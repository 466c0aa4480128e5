"""One piece of work on a thread: everything that is known of it while its lock is held."""

from dataclasses import dataclass, replace

from everlong.engine.calls import Call
from everlong.engine.live import Live, refreshed
from everlong.engine.means import Journal, Means
from everlong.engine.past import Past, reaching
from everlong.engine.settings import Settings
from everlong.engine.sizing import Sizes, sizes_of
from everlong.engine.view import Wish

__all__ = ["UNBOUNDED", "Work", "work_on"]

UNBOUNDED = 1 << 60


@dataclass(slots=True)
class Work:
    """One preparation under way."""

    means: Means
    thread: str
    call: Call
    settings: Settings
    journal: Journal
    turn: str
    live: Live
    sizes: Sizes
    #: For a view made anew of the raw past: the order of each message of its history in the thread.
    orders: tuple[int, ...] = ()

    def wish(self, *, limit: int = UNBOUNDED, target: int = UNBOUNDED) -> Wish:
        """What a view is asked for."""
        return Wish(
            counter=self.sizes.counter,
            limit=limit,
            target=target,
            preset=self.sizes.preset,
            window=self.sizes.window.context,
            fmt=self.call.fmt,
            recall=self.call.recall_tool,
        )

    def past(self) -> Past:
        """The raw past, up to what is known of the thread."""
        past = reaching(self.means.threads, self.live.past, self.live.opened)
        self.live = replace(self.live, past=past)
        return past

    def refresh(self) -> None:
        """Read what is new in the thread."""
        self.live = refreshed(self.means.threads, self.thread, self.live)


def work_on(means: Means, live: Live, call: Call, journal: Journal, turn: str) -> Work:
    """Work on a thread as it was just seen, with the sizes of the call. Whoever asks holds the thread's lock."""
    thread = live.opened.thread
    settings = means.settings.for_thread(thread.settings)
    return Work(means, thread.id, call, settings, journal, turn, live, sizes_of(means, settings, call, live))
