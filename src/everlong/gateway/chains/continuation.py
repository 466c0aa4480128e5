"""A request that continues a stored conversation: the engine gets the whole past, the provider only what is new.

The engine sees the whole conversation, as if the client had sent it. What is sent depends on what the provider stores:
if the view begins with exactly the input of an earlier answer, followed by that answer, the request names the answer
and contains only what comes after it. Otherwise it names nothing and contains the whole view. So a compaction is sent
once, and the next request continues from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from everlong.core import History, Json, Message
from everlong.errors import ContextOverflow, ProviderError
from everlong.gateway.chains.links import NOTHING_SENT, Chains, Link, Past, View, raw, views_of
from everlong.gateway.chains.provider import Provider
from everlong.gateway.conversations.canonical import Unit, grouped, prefix_digests, unit_of
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.request import ModelRequest, Piece, encoded
from everlong.wire import Held

__all__ = ["Continuation", "continuation_of"]

UNKNOWN = (400, 404)  # statuses of a provider that does not know a name
LOOKED_BACK = 32  # units from the end that are searched for a known answer
AT = "at:"  # the prefix of links that are named after all messages up to them


def conversation_name(value: Json) -> str:
    """Return the name of a conversation: a text, or an object with an id. "" if there is none."""
    name = value.get("id") if isinstance(value, dict) else value
    return name if isinstance(name, str) else ""


def continuation_of(chains: Chains, scope: str, upstream: str, request: ModelRequest) -> "Continuation | None":
    """Return what a request continues; None if the provider stores nothing of it."""
    held = request.format.server.held
    if held is None:
        return None
    previous, conversation = request.value(held.previous), conversation_name(request.value(held.conversation))
    named = conversation or (previous if isinstance(previous, str) else "")
    if not named and (request.partial or request.value(held.store) is False):
        return None
    return Continuation(
        chains=chains,
        scope=scope,
        upstream=upstream,
        held=held,
        asked=request,
        named=named,
        conversation=conversation,
        past=chains.past(scope, named),
    )


@dataclass(slots=True, kw_only=True)
class Continuation:
    """What one request continues, and what becomes of its answer.

    `named` is the answer or conversation that it names.
    """

    chains: Chains
    scope: str
    upstream: str
    held: Held
    #: The request as the client sent it.
    asked: ModelRequest
    named: str
    conversation: str
    past: Past
    #: Whether the provider no longer has the answer to continue.
    lost: bool = False
    #: Whether the last body that was written left out the past, which the provider has.
    continues: bool = False
    #: The index at which the client's own messages begin in the request with its past.
    _own: int = 0
    _view: View = field(default=NOTHING_SENT)
    #: The answer as it was stored.
    kept: Link | None = None

    @property
    def held_at(self) -> str:
        """The provider that stores the newest answer; "" if none does."""
        return self._newest.upstream if self._newest.name else ""

    @property
    def size(self) -> int:
        """Bytes of the past."""
        return sum(link.size for link in self.past.links)

    @property
    def apart(self) -> bool:
        """Whether the last request was sent outside the provider's conversation."""
        known = bool(self.conversation) and not self.past.missing
        return known and (not self.continues or self._newest.apart)

    def with_past(self) -> ModelRequest:
        """Return the request as if the client had sent the whole conversation.

        The request is unchanged if its past is unknown or if it has no messages.
        """
        if not self.named or self.past.missing or not self.asked.messages:
            return self.asked
        request = self.asked.without_fields((self.held.previous, self.held.conversation))
        return request.with_messages([*self.past.items, *request.messages])

    def needs_past(self, error: ProviderError, body: bytes) -> bool:
        """Whether the unseen past is needed: the request is too long, or the provider lost the newest part."""
        if isinstance(error, ContextOverflow):
            return True
        return error.status in UNKNOWN and bool(self.past.links) and self.named.encode() in body

    async def fetch(self, provider: Provider) -> bool:
        """Ask the provider for the unseen past; return whether the past is complete now."""
        missing = self.past.missing
        in_conversation = missing == self.conversation
        ask = provider.items_of_conversation if in_conversation else provider.past_of_answer
        found = await ask(missing)
        if found is None:
            return False
        link = Link(sent=raw([encoded(item) for item in found]), depth=1)
        if in_conversation:
            self.chains.begin(self.scope, missing, link)
        else:
            self.chains.keep(self.scope, missing, link)
        self.past = Past((link, *self.past.links))
        return True

    def begin(self, request: ModelRequest) -> None:
        """Record where the request's own messages begin; recalled parts may have been put back into the past."""
        self._own = len(request.messages) - len(self.asked.messages)

    # --- what is sent ------------------------------------------------------------------------------

    def narrowed(
        self,
        request: ModelRequest,
        transcript: Transcript,
        conversation: Conversation,
        view: Sequence[Message],
        members: Sequence[tuple[bytes, int]],
    ) -> tuple[list[bytes], dict[str, bytes]]:
        """Return the members to send, and the field that names the stored conversation before them, if any."""
        whole = [member for member, _ in members]
        known = self._newest
        beginning, self._view = views_of(whole, known.view.members)
        self.continues = False
        moved = bool(known.name) and known.upstream != self.upstream
        if not self.named or self.lost or moved or beginning != known.view:
            return whole, {}
        if self.conversation and not known.apart:
            field_name, name = self.held.conversation, self.conversation
            past = self._added
        elif known.name:
            field_name, name = self.held.previous, known.name
            past = 0
        else:
            return whole, {}
        rest = self._after(request, _Sent(transcript, conversation, view, members), known, past)
        if rest is None:
            return whole, {}
        self.continues = True
        return rest, {field_name: encoded(name)}

    @property
    def _newest(self) -> Link:
        """The newest answer; an empty one if there is none yet."""
        return next((link for link in reversed(self.past.links) if link.view.members or link.name), NO_ANSWER)

    @property
    def _added(self) -> int:
        """Items that were added to the conversation after the newest answer."""
        count = 0
        for link in reversed(self.past.links):
            if link.view.members or link.name:
                break
            count += len(link.items)
        return count

    def _after(self, request: ModelRequest, sent: "_Sent", known: Link, added: int) -> list[bytes] | None:
        """Return the members after those that the provider stores; None if it stores something else.

        The provider also stores the `added` items after the newest answer; with 0, these items are sent.
        """
        start = self._own - (0 if added else self._added)
        new = len(grouped(request.format, request.messages[start:]))
        past = len(grouped(request.format, request.messages[start - added : start])) if added else 0
        units = sent.units
        boundary = len(units) - new
        until = sent.place_after(boundary)
        if until is None:
            return None
        before = [member for member, end in sent.members if end <= until]
        answered = [unit.sent for unit in units[max(0, boundary - known.units - past) : boundary]]
        if len(before) < known.view.members or before[known.view.members :] != answered:
            return None
        return [member for member, end in sent.members if end > until]

    def gives_up(self, error: ProviderError, body: bytes) -> bool:
        """Whether the provider refused because it lost what the request names. From then on, nothing is named."""
        if not self.continues or isinstance(error, ContextOverflow) or error.status not in UNKNOWN:
            return False
        name = self.conversation or self._newest.name
        self.lost = name.encode() in body or self.held.previous.encode() in body
        return self.lost

    # --- what is kept ------------------------------------------------------------------------------

    def keep(
        self, names: Sequence[str], answers: Sequence[Sequence[Json]], transcript: Transcript | None = None
    ) -> None:
        """Keep the answer for a later request that names it.

        `answers` are its parts as the client sees them. `names` are their ids at the provider; the client knows one of
        them, and the last is the one to continue.
        """
        items: list[Json] = [item for answer in answers for item in answer]
        parent, sent = self.named, self.asked.messages
        if not self.named and transcript is not None:
            parent, sent = self._seen(transcript)
        stored = self.asked.value(self.held.store) is not False
        before = self.chains.get(self.scope, parent) if parent else None
        link = Link(
            parent=before.parent if before is not None and before.moves else parent,
            sent=raw(sent),
            answer=raw([encoded(item) for item in items]),
            name=names[-1] if stored else "",
            upstream=self.upstream,
            view=self._view,
            units=len(grouped(self.asked.format, [encoded(item) for item in answers[-1]])),
            apart=self.apart,
            depth=1 if before is None else before.depth + 1,
        )
        self.kept = link
        for name in names:
            self.chains.keep(self.scope, name, link)
        if self.conversation and not self.past.missing:
            self.chains.keep(self.scope, self.conversation, Link(parent=names[-1], depth=link.depth, moves=True))
        if not self.named and transcript is not None and len(answers) == 1:
            said = unit_of(self.asked.format, [item for item in answers[0] if isinstance(item, dict)])
            start = transcript.last or self.asked.fmt.encode()
            place = _place(transcript, prefix_digests([said], start)[0])
            self.chains.remember(self.scope, place, names[-1])

    def _seen(self, transcript: Transcript) -> tuple[str, tuple[Piece, ...]]:
        """Return the newest known answer that the client sent again, and the new messages after it."""
        sent = self.asked.messages
        for at in range(len(transcript.digests), max(0, len(transcript.digests) - LOOKED_BACK), -1):
            found = self.chains.get(self.scope, _place(transcript, transcript.digests[at - 1]))
            if found is not None and self.chains.get(self.scope, found.parent) is not None:
                groups = grouped(self.asked.format, sent)[: len(transcript.leading) + at]
                return found.parent, sent[sum(map(len, groups)) :]
        return "", sent


NO_ANSWER = Link()


def _place(transcript: Transcript, digest: bytes) -> str:
    return f"{AT}{transcript.head_digest.hex()}{digest.hex()}"


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is about to be sent: the view without system text in its own field, and where each member ends in it."""

    transcript: Transcript
    conversation: Conversation
    view: History | Sequence[Message]
    members: Sequence[tuple[bytes, int]]

    @property
    def units(self) -> Sequence[Unit]:
        return (*self.transcript.leading, *self.transcript.units)

    def place_after(self, units: int) -> int | None:
        """Return how many messages of the view the first units take; None if the last of these is not in the view."""
        if units <= 0:
            return 0 if units == 0 else None
        leading = len(self.transcript.leading)
        opening, messages = self.conversation.opening, self.conversation.messages
        own = (opening[len(opening) - leading + units - 1],) if units <= leading else messages[units - leading - 1]
        return next((at + 1 for at in range(len(self.view) - 1, -1, -1) if self.view[at] is own[-1]), None)
