"""How far a long command is: a bar on standard error, where a person looks at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from everlong.cli.terminal import console

__all__ = ["progress"]


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar while it lasts; it is told how much more is done. Without a total it only shows that something goes on."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where it is seen

    with Progress(console=out, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)
