"""Keep the newest images; older ones become a line of text that describes them.

Images are limited by number and by bytes, because providers refuse requests for both. If a request has more than `many`
images, those above `longest_side` pixels go too: a single one makes the provider refuse the request. Protected images
(in the last user message, in unread results) stay and are counted first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.text.changes import Cause, Change, rewrite
from everlong.compress.text.markers import picture_stub
from everlong.core import Image, Text, ToolResult, part_ref
from everlong.tokens import dimensions

__all__ = ["images"]

CAUSE = Cause("images", "older image")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image and its place: position, part, and the index inside a tool result if it is in one."""

    place: tuple[int, int, int | None]
    image: Image
    open: bool

    @property
    def size(self) -> int:
        """The bytes that it takes in the request."""
        return len(self.image.data) or len(self.image.url)

    @property
    def longest_side(self) -> int:
        """The longest side in pixels; 0 if it is unknown."""
        return max(dimensions(self.image.data) or (0,))


def images(
    draft: Draft,
    task: Task,
    *,
    keep: int = 20,
    most_bytes: int = 16_000_000,
    many: int = 20,
    longest_side: int = 2_000,
) -> Draft:
    """Replace all but the newest `keep` images, within `most_bytes` as they are sent (base64).

    Example, keep=1: user [image A], assistant, user [image B] -> "[image left out: …]", assistant, image B
    """
    pictures = list(_pictures(draft))
    fixed = [picture for picture in pictures if not picture.open]
    if any(picture.longest_side > longest_side for picture in fixed):
        keep = min(keep, many)  # a protected image is too large for a request with many images
    count, room = len(fixed), most_bytes - sum(picture.size for picture in fixed)
    stay: list[Picture] = []
    for picture in reversed(pictures):
        if picture.open and count < keep and picture.size <= room:
            stay.append(picture)
            count += 1
            room -= picture.size
    if count > many:
        stay = [picture for picture in stay if picture.longest_side <= longest_side]
    kept = {picture.place for picture in stay}
    gone = [picture for picture in pictures if picture.open and picture.place not in kept]
    return rewrite(draft, task, CAUSE, list(_changes(draft, gone, task)))


def _pictures(draft: Draft) -> Iterator[Picture]:
    for position, slot in enumerate(draft.slots):
        free = slot.at != OURS and slot.at not in draft.protected
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, Image):
                yield Picture((position, index, None), part, free)
            elif isinstance(part, ToolResult):
                for inner, block in enumerate(part.content):
                    if isinstance(block, Image):
                        yield Picture((position, index, inner), block, free)


def _changes(draft: Draft, gone: list[Picture], task: Task) -> Iterator[Change]:
    results: dict[tuple[int, int], ToolResult] = {}
    for picture in gone:
        position, index, inner = picture.place
        ref = part_ref(picture.image)
        stub = Text(picture_stub(_facts(picture.image), ref, task))
        if inner is None:
            yield Change(position, index, stub, ref)
            continue
        part = results.get((position, index), draft.slots[position].message.parts[index])
        if isinstance(part, ToolResult):
            content = (*part.content[:inner], stub, *part.content[inner + 1 :])
            now = results[position, index] = replace(part, content=content)
            yield Change(position, index, now, ref)


def _facts(image: Image) -> tuple[str, ...]:
    """Return type, dimensions and bytes of an image, or its address. Example: ("image/png", "640x480", "12 kB")"""
    if image.url and not image.url.startswith("data:"):
        return (image.url,)
    kind, _, data = ("", "", image.data) if image.data else image.url.removeprefix("data:").partition(";base64,")
    facts = [image.media_type or kind or "image"]
    size = dimensions(data)
    if size is not None:
        facts.append(f"{size[0]}x{size[1]}")
    return (*facts, f"{len(data) * 3 // 4_000} kB")
