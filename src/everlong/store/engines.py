"""An engine on a store, opened in one call. A module of its own: most who use a store need no engine."""

from everlong.engine import DEFAULT_SETTINGS, Busy, Engine, Settings
from everlong.store.urls import open_store

__all__ = ["open_engine"]


def open_engine(url: str, *, settings: Settings = DEFAULT_SETTINGS, busy: Busy = "wait") -> Engine:
    """Return an engine on the store of this URL; close it, or use it in a `with`.

    While a turn of a thread is under way, a second one waits, or is refused with ThreadBusy if `busy` is "refuse".
    Example: open_engine("chat.db")
    """
    return Engine(open_store(url), settings=settings, busy=busy)
