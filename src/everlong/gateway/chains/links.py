"""Answers that a client may name in its next request: each with its new items and the answer before it.

A provider that stores conversations gets only what is new, and the name of an earlier answer or conversation.
Everything passes through the gateway, so the gateway knows the whole: a link has its new items and the name of its
parent, and a conversation is a name that moves from link to link. Links are in memory, and also in the store if it
keeps texts. All of them are under the client's scope.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakValueDictionary

import msgspec

from everlong.gateway.conversations.opaque import Notes
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.request import Piece

__all__ = ["NOTHING_SENT", "Chains", "Link", "Past", "View", "raw", "views_of"]

KIND = "answers"  # the kind of notes in the store
MOST_LINKS = 10_000  # of one conversation; longer ones are left to the provider
LONGEST_NAME = 256  # characters of a name; longer names are ignored
OVERHEAD = 300  # bytes of a link without its items


class View(msgspec.Struct, frozen=True, array_like=True):
    """What a provider received for an answer, including its stored part: the number of members, and their digest."""

    members: int
    digest: str


def views_of(members: Sequence[bytes], first: int) -> tuple[View, View]:
    """Return the views of the first members and of all, in the order they are sent. Each byte is hashed once."""
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
    """An answer with its request, items that a client added to a conversation, or the current end of a conversation."""

    parent: str = ""
    sent: tuple[msgspec.Raw, ...] = ()
    answer: tuple[msgspec.Raw, ...] = ()
    #: The name with which the provider continues after the answer; "" if there is none, or if the provider lacks it.
    name: str = ""
    #: The provider that stores it, what was sent for it, and the number of units in its last answer.
    upstream: str = ""
    view: View = NOTHING_SENT
    units: int = 0
    #: Whether the provider's conversation lacks it, because it was sent outside of that conversation.
    apart: bool = False
    #: The position in its chain, from 1.
    depth: int = 0
    #: Whether it is the end of a conversation, whose name moves on.
    moves: bool = False

    @property
    def items(self) -> tuple[msgspec.Raw, ...]:
        """All items that the link adds to the conversation."""
        return (*self.sent, *self.answer)

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return OVERHEAD + sum(len(item) for item in self.items)


class Past(msgspec.Struct, frozen=True):
    """The links up to a name, oldest first. `missing` is the first unknown name; "" if all are known."""

    links: tuple[Link, ...] = ()
    missing: str = ""

    @property
    def items(self) -> list[Piece]:
        """All items of the conversation."""
        return [item for link in self.links for item in link.items]


def raw(pieces: Sequence[Piece]) -> tuple[msgspec.Raw, ...]:
    """Return copies of the pieces: a view would keep the whole request in memory."""
    return tuple(msgspec.Raw(bytes(piece)) for piece in pieces)


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Link)


class Chains:
    """The links of all clients. Memory is bounded: the least recently used are dropped first."""

    def __init__(self, store: StateStore, room: int) -> None:
        self._store = store
        self._links: Notes[Link] = Notes(room, lambda link: link.size)
        self._orders: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def get(self, scope: str, name: str) -> Link | None:
        """Return the link with this name; None if it is unknown."""
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
            self._store.keep_note(KIND, scope, name, _encoder.encode(link).decode("utf-8", "replace"), needed=True)

    def begin(self, scope: str, conversation: str, link: Link) -> None:
        """Begin a conversation with its first items."""
        self.keep(scope, f"{conversation}#{link.depth}", link)
        self.keep(scope, conversation, Link(parent=f"{conversation}#{link.depth}", depth=link.depth, moves=True))

    def add(self, scope: str, conversation: str, items: Sequence[Piece]) -> None:
        """Add items to a known conversation."""
        known = self.get(scope, conversation)
        if known is not None and items:
            self.begin(scope, conversation, Link(parent=known.parent, sent=raw(items), depth=known.depth + 1))

    def remember(self, scope: str, place: str, name: str) -> None:
        """Remember, in memory only, the answer at this place of a conversation that the client sends in full."""
        self._links.keep((scope, place), Link(parent=name))

    def forget(self, scope: str, name: str) -> None:
        """Forget a name and its items."""
        self._links.forget((scope, name))
        if self._store.keep == "text":
            self._store.keep_note(KIND, scope, name, "null", needed=True)

    def order(self, scope: str, conversation: str) -> asyncio.Lock:
        """Return the lock that orders additions to a provider's conversation. For the event loop only."""
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
