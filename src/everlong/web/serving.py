"""A server for applications with event streams: it does not wait for pages that listen for ever."""

from collections.abc import Callable
from types import FrameType

import uvicorn

__all__ = ["StreamingServer"]


class StreamingServer(uvicorn.Server):
    """Ends the streams as soon as it is told to end, then serves what is left as usual."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to end."""
        self._end_streams()
        super().handle_exit(sig, frame)
