"""The one place that decides whether a tool may act: by what was denied, allowed, granted in a thread, or named.

If none of these settles it, a person is asked. The terminal and the app only pass the question on; they decide nothing.
If nobody can be asked, the action is refused with a line that names the option that allows it.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from everlong.agent.permissions.action import Action, Answer, Approve
from everlong.agent.permissions.patterns import kind_pattern, pattern_for
from everlong.agent.permissions.policy import NO_POLICY, Policy, RememberedPolicy
from everlong.agent.permissions.visible import LONGEST, MOST_LINES, cut, visible
from everlong.core import Message, Text
from everlong.errors import InputError

__all__ = ["Approval", "Gate", "Permissions", "Refusal", "Verdict", "names_file", "typed_text"]

#: Whether tools that act need an approval, simply run, or never run.
Approval: TypeAlias = Literal["ask", "always", "never"]
#: Why an action was refused. `answered`: somebody said no.
Refusal: TypeAlias = Literal["answered", "nobody", "guarded", "denied", "never", "too long", "broken"]

LONGEST_TYPED = 2_000  # characters of a message; a longer one was pasted, and others may have written it
ATTACHED = ("<file name=", "<stdin>", "<command line=")
SENTENCE_END = re.compile(r"\n+|[.!?;](?=\s|$)|[。！？；]")
#: Words of a sentence that names a file in order to protect it.
KEPT = re.compile(
    r"\b(?:not|never|without|except|don.?t|mustn.?t|leave|keep)\b|[不别勿莫]|除了|以外|保留", re.IGNORECASE
)
QUOTED = re.compile(r"```.*?(?:```|\Z)|^\s*>.*?$", re.DOTALL | re.MULTILINE)
ALL = (Answer.NO, Answer.ONCE, Answer.THREAD, Answer.ALWAYS)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an action is allowed; if not, why, and a detail of the reason."""

    allowed: bool
    why: Refusal | None = None
    #: The pattern that would allow it, or that denied it, or the reason itself.
    detail: str = ""
    #: The action that a person was asked about and allowed; None if nobody was asked.
    asked: Action | None = None


@dataclass(slots=True)
class _Thread:
    """The permissions of a person's thread: what was granted, what the person typed last, and the locks."""

    kinds: set[str] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)
    typed: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: A lock for each file that actions change.
    changing: dict[Path, asyncio.Lock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Decides which actions are allowed, for all threads of a program.

    - `ask`: a function that asks a person; None if nobody can be asked.
    - `policy`: the patterns of options and settings.
    - `remembered`: the user's own file, to which "always" is written.
    - `guarded`: files and folders that no pattern and no grant ever covers.

    Grants for a thread last as long as the thread.
    """

    ask: Approve | None = field(default=None, repr=False)
    approval: Approval = "ask"
    policy: Policy = NO_POLICY
    remembered: RememberedPolicy | None = None
    guarded: Sequence[Path] = ()
    #: Called with each change of a file that needs no question, before it is made. It must not wait.
    watch: Callable[[Action], None] | None = field(default=None, repr=False)
    #: Set for sub-agents: the person's thread that they work for.
    root: str = ""
    _threads: dict[str, _Thread] = field(default_factory=dict, repr=False)

    def gate(self, thread: str) -> "Gate":
        """Return the gate for the actions of a thread."""
        return Gate(self, self.root or thread)

    def within(self, thread: str) -> "Permissions":
        """Return the same permissions for sub-agents of a thread.

        They ask in that thread, and their tasks do not name files.
        """
        return replace(self, root=thread)

    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """Return what was allowed in each thread for as long as it lasts: kinds, tools by name, single files.

        Example: {"app-1": ("command", "tool:mail", "path:/home/me/x/notes.txt")}
        """
        given = {thread: (*sorted(state.kinds), *map(_named, sorted(state.files))) for thread, state in self._known()}
        return {thread: grants for thread, grants in given.items() if grants}

    def _known(self) -> Sequence[tuple[str, _Thread]]:
        return tuple(self._threads.items())

    def revoke(self, thread: str, grant: str) -> bool:
        """Revoke a grant and return whether it existed. Its actions need a question again; "file" revokes all files."""
        state = self._threads.get(thread)
        if state is None or grant not in self.granted().get(thread, ()):
            return False
        state.kinds.discard(grant)
        kept = {path for path in state.files if grant not in ("file", _named(path))}
        state.files.intersection_update(kept)
        return True

    def state_of(self, thread: str) -> _Thread:
        """Return the permission state of a thread."""
        return self._threads.setdefault(thread, _Thread())


@dataclass(frozen=True, slots=True)
class Gate:
    """The permissions of one person's thread."""

    permissions: Permissions
    thread: str

    def note_message(self, message: Message, *, more: bool = False) -> None:
        """Note a person's message: changing a file that it names needs no question. `more`: keep the earlier text."""
        if not self.permissions.root:
            state = self.permissions.state_of(self.thread)
            state.typed = f"{state.typed}\n{typed_text(message)}" if more else typed_text(message)

    @property
    def lock(self) -> asyncio.Lock:
        """The lock that is held while a person is asked: one question at a time, for all calls and sub-agents."""
        return self.permissions.state_of(self.thread).lock

    def changing(self, action: Action) -> asyncio.Lock:
        """Return the lock of the file that an action changes: it stays as shown until it is written."""
        locks = self.permissions.state_of(self.thread).changing
        return locks.setdefault(action.path, asyncio.Lock()) if action.path is not None else asyncio.Lock()

    async def decide(self, action: Action) -> Verdict:
        """Decide about an action; ask a person if nothing else decides. Call it with the `lock` held."""
        return self.settled(action) or await self._ask(action)

    def settled(self, action: Action) -> Verdict | None:
        """Return the verdict that needs no question; None if a person must be asked."""
        try:
            return self._settled(action)
        except InputError as error:  # a policy that cannot be read allows nothing
            return Verdict(False, "broken", str(error))

    def _settled(self, action: Action) -> Verdict | None:
        given, state = self.permissions, self.permissions.state_of(self.thread)
        if given.approval == "never":
            return Verdict(False, "never")
        policy = given.policy if given.remembered is None else given.policy + given.remembered.read()
        denied = policy.denied_by(action)
        if denied:
            return Verdict(False, "denied", denied)
        if self._is_guarded(action):
            return None
        named = given.ask is not None and action.kind == "file" and names_file(state.typed, action.subject)
        granted = _grant(action) in state.kinds or action.path in state.files
        if given.approval == "always" or granted or named or policy.allows(action):
            self._note(action)
            self._report_change(action)
            return Verdict(True)
        return None

    def _report_change(self, action: Action) -> None:
        """Report a change of a file that needs no question to `watch`."""
        watch = self.permissions.watch
        shown = self._shown(action, "") if watch is not None and action.kind == "file" else None
        if watch is not None and shown is not None:
            watch(shown)

    def _is_guarded(self, action: Action) -> bool:
        """Return whether the action could change the permissions themselves."""
        if action.kind == "file":
            path = action.path
            return path is not None and any(path.is_relative_to(guarded) for guarded in self.permissions.guarded)
        names = (path.name if path.suffix else "/".join(path.parts[-2:]) for path in self.permissions.guarded)
        return action.kind == "command" and any(name in action.subject for name in names)

    async def _ask(self, action: Action) -> Verdict:
        ask = self.permissions.ask
        guarded = self._is_guarded(action)
        pattern = "" if guarded else pattern_for(action)
        if ask is None:
            return Verdict(False, "guarded") if guarded else Verdict(False, "nobody", pattern or kind_pattern(action))
        shown = self._shown(action, "" if self.permissions.remembered is None else pattern)
        if shown is None:
            return Verdict(False, "too long", kind_pattern(action))
        if guarded or shown.hidden:
            shown = replace(shown, answers=(Answer.NO, Answer.ONCE), pattern="")
        answer = await ask(shown)
        if answer is Answer.NO or answer not in shown.answers:
            return Verdict(False, "answered")
        if answer is Answer.ALWAYS and self.permissions.remembered is not None:
            await asyncio.to_thread(self.permissions.remembered.remember, shown.pattern)
        if answer is Answer.THREAD:
            self.permissions.state_of(self.thread).kinds.add(_grant(action))
        if not guarded:
            self._note(action)
        return Verdict(True, asked=action)

    def _note(self, action: Action) -> None:
        """Note a file that may be changed now: its next change in this thread needs no question."""
        if action.kind == "file" and action.path is not None:
            self.permissions.state_of(self.thread).files.add(action.path)

    def _shown(self, action: Action, pattern: str) -> Action | None:
        """Return the action as a person sees it, with every character visible; None if it is too long to read.

        A command acts at once, so it is shown whole or refused. A file can be restored, so a long diff shows only its
        head and its tail, with the number of lines between them; then only this one change can be allowed.
        """
        answers = ALL if pattern else ALL[:-1]
        known = replace(action, thread=self.thread, pattern=pattern, answers=answers)
        known = replace(known, subject=visible(action.subject), hint=visible(action.hint))
        if action.kind == "file":
            diff = cut(action.details)
            return replace(known, details=diff.text, hidden=diff.hidden)
        details = visible(action.details)
        long = max(len(details), len(action.details), len(action.hint)) > LONGEST
        return None if long or action.details.count("\n") >= MOST_LINES else replace(known, details=details)


def _named(path: Path) -> str:
    return f"path:{path}"


def _grant(action: Action) -> str:
    """Return what "for this thread" covers: all actions of the kind; for other tools, only calls of this tool."""
    return f"tool:{action.tool}" if action.kind == "tool" else action.kind


# --- what a person's message names ----------------------------------------------------------------


def typed_text(message: Message) -> str:
    """Return what a person typed: the first text of a message without quotations; "" if it is long or an attachment."""
    text = next((part.text for part in message.parts if isinstance(part, Text)), "")
    return "" if text.startswith(ATTACHED) or len(text) > LONGEST_TYPED else QUOTED.sub("\n", text)


def names_file(text: str, path: str) -> bool:
    """Return whether a text names the file at that path, other than to protect it. Hidden files never count.

    Example: "Fix src/app.py." names src/app.py; "Do not touch src/app.py" does not, nor does "Fix app.py"
    """
    if not path or any(part.startswith(".") for part in path.split("/")):
        return False
    named = re.compile(rf"(?<![A-Za-z0-9_./~-])(?:\./)?{re.escape(path)}(?![A-Za-z0-9_/-]|\.[A-Za-z0-9])")
    return any(named.search(sentence) and not KEPT.search(sentence) for sentence in SENTENCE_END.split(text))
