"""Answers that a client may name in its next request: each with what was new in it, and the one before it.

A provider that holds conversations gets only what is new, and the name of an earlier answer or of a conversation. All
of it passes through here, so the whole is known: a link holds its own news and the name of its parent, and a
conversation is a name that moves from link to link. Links are held in memory, and in the store if it keeps texts.
Everything is under the client's scope.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakValueDictionary

import msgspec

from everlong.gateway.conversations.opaque import Notes
from everlong.gateway.conversations.persistence import StateStore
from everlong.gateway.request import Piece

__all__ = ["NOTHING_SENT", "Chains", "Link", "Past", "View", "raw", "views_of"]

KIND = "answers"  # of notes in the store
MOST_LINKS = 10_000  # of one conversation; a longer one is left to its provider
LONGEST_NAME = 256  # characters of a name; a longer one is nobody's
OVERHEAD = 300  # bytes that a link takes beside its items


class View(msgspec.Struct, frozen=True, array_like=True):
    """What a provider was sent for an answer, with all that it holds before: how many members, and their digest."""

    members: int
    digest: str


def views_of(members: Sequence[bytes], first: int) -> tuple[View, View]:
    """Return the views of the first members and of all, in the order they are sent; each byte is read once."""
    digest = sha256()
    beginning = digest.copy()
    for at, member in enumerate(members, start=1):
        digest.update(b"%d:" % len(member))
        digest.update(member)
        if at == first:
            beginning = digest.copy()
    return View(min(first, len(members)), beginning.hexdigest()), View(len(members), digest.hexdigest())


NOTHING_SENT = views_of((), 0)[1]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer and what was sent with it; or items that a client added to a conversation; or where one stands now."""

    parent: str = ""
    sent: tuple[msgspec.Raw, ...] = ()
    answer: tuple[msgspec.Raw, ...] = ()
    #: The name by which the provider continues after the answer; "" if there is none, or it does not hold it.
    name: str = ""
    #: Who holds it, what it was sent for it, and of how many units its last answer consists.
    upstream: str = ""
    view: View = NOTHING_SENT
    units: int = 0
    #: Whether the conversation at the provider does not have it, because it was sent apart from it.
    apart: bool = False
    #: How many links are before it.
    depth: int = 0
    #: Whether it is the name of a conversation, which moves on.
    moves: bool = False

    @property
    def items(self) -> tuple[msgspec.Raw, ...]:
        """All that it adds to what was said before."""
        return (*self.sent, *self.answer)

    @property
    def size(self) -> int:
        """Roughly the bytes it takes."""
        return OVERHEAD + sum(len(item) for item in self.items)


class Past(msgspec.Struct, frozen=True):
    """The links up to a name, oldest first. `missing` is the first name that is not known; "" if all are."""

    links: tuple[Link, ...] = ()
    missing: str = ""

    @property
    def items(self) -> list[Piece]:
        """All that was said."""
        return [item for link in self.links for item in link.items]


def raw(pieces: Sequence[Piece]) -> tuple[msgspec.Raw, ...]:
    """Return pieces that hold nothing but their own bytes: a view would keep a whole request in memory."""
    return tuple(msgspec.Raw(bytes(piece)) for piece in pieces)


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Link)


class Chains:
    """The links of all clients. Memory is bounded: those used longest ago go first."""

    def __init__(self, store: StateStore, room: int) -> None:
        self._store = store
        self._links: Notes[Link] = Notes(room, lambda link: link.size)
        self._orders: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def get(self, scope: str, name: str) -> Link | None:
        """Return the link of a name; None if it is not known."""
        if len(name) > LONGEST_NAME:
            return None
        known = self._links.get((scope, name))
        if known is not None and not known.moves:
            return known
        stored = self._stored(scope, name)
        if stored is None or (known is not None and known.depth >= stored.depth):
            return known
        self._links.keep((scope, name), stored)
        return stored

    def keep(self, scope: str, name: str, link: Link) -> None:
        """Keep a link under the name that clients know."""
        if not 0 < len(name) <= LONGEST_NAME:
            return
        self._links.keep((scope, name), link)
        if self._store.keep == "text":
            self._store.keep_note(KIND, scope, name, _encoder.encode(link).decode("utf-8", "replace"))

    def begin(self, scope: str, conversation: str, link: Link) -> None:
        """Begin a conversation with what is in it."""
        self.keep(scope, f"{conversation}#{link.depth}", link)
        self.keep(scope, conversation, Link(parent=f"{conversation}#{link.depth}", depth=link.depth, moves=True))

    def add(self, scope: str, conversation: str, items: Sequence[Piece]) -> None:
        """Add items to a conversation that is known."""
        known = self.get(scope, conversation)
        if known is not None and items:
            self.begin(scope, conversation, Link(parent=known.parent, sent=raw(items), depth=known.depth + 1))

    def remember(self, scope: str, place: str, name: str) -> None:
        """Note in memory which answer stands where a conversation is that a client sends as a whole."""
        self._links.keep((scope, place), Link(parent=name))

    def forget(self, scope: str, name: str) -> None:
        """Forget a name, and with it what was said there."""
        self._links.forget((scope, name))
        if self._store.keep == "text":
            self._store.keep_note(KIND, scope, name, "null")

    def order(self, scope: str, conversation: str) -> asyncio.Lock:
        """Return what keeps additions to a conversation at the provider in their order. In the event loop only."""
        return self._orders.setdefault((scope, conversation), asyncio.Lock())

    def past(self, scope: str, name: str) -> Past:
        """Return everything up to a name, as far as it is known."""
        links: list[Link] = []
        while name:
            link = self.get(scope, name)
            if link is None or len(links) >= MOST_LINKS:
                break
            links.append(link)
            name = link.parent
        return Past(tuple(reversed(links)), name)

    def _stored(self, scope: str, name: str) -> Link | None:
        note = self._store.note(KIND, scope, name) if self._store.keep == "text" else None
        try:
            return None if note in (None, "null") else _decoder.decode(str(note))
        except msgspec.MsgspecError:
            return None  # written by a version that we cannot read
