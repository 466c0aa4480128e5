"""Users and their logins. A login is a random text in a cookie; the store has its digest, its user and its end."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import time

from everlong.engine import Threads
from everlong.web.fields import stored_object

__all__ = ["NOBODY", "Logins", "User"]

KIND = "app login"  # of the facts
MOST_LOGINS = 10_000  # the oldest go first
LONGEST_LOGIN = 200  # characters of a cookie that is looked up
OWNED = 32  # characters of a digest that name an owner


@dataclass(frozen=True, slots=True)
class User:
    """A user of the app. `id` never belongs to another user; `name` is for people."""

    id: str = ""
    name: str = ""

    @property
    def owner(self) -> str:
        """The owner of this user's threads; "" for an app without accounts."""
        return f"app/{sha256(self.id.encode('utf-8', 'replace')).hexdigest()[:OWNED]}" if self.id else ""


#: The user of an app without accounts.
NOBODY = User()


class Logins:
    """The logins of all users, for every process on a store. Reads and writes the store; safe in any thread."""

    def __init__(self, threads: Threads, clock: Callable[[], float] = time) -> None:
        self._threads = threads
        self._clock = clock

    def add(self, user: User, seconds: float) -> str:
        """Return a new login, for the cookie of a browser."""
        login = secrets.token_urlsafe(32)
        fields = {"user": user.id, "name": user.name, "until": self._clock() + seconds, "made": self._clock()}
        self._threads.keep_fact(KIND, _digest(login), json.dumps(fields))
        self._sweep()
        return login

    def user(self, login: str) -> User | None:
        """Return the user of a login; None if it is unknown or has ended."""
        if not login or len(login) > LONGEST_LOGIN:
            return None
        match stored_object(self._threads.fact(KIND, _digest(login)) or "{}"):
            case {"user": str() as name, "name": str() as shown, "until": int() | float() as until}:
                return User(name, shown) if self._clock() < until else None
            case _:
                return None

    def end(self, login: str) -> None:
        """End a login, in every process."""
        self._threads.drop_fact(KIND, _digest(login))

    def _sweep(self) -> None:
        """Forget logins that have ended, and the oldest if there are too many."""
        now = self._clock()
        kept: list[tuple[float, str]] = []
        for digest, value in self._threads.facts(KIND).items():
            match stored_object(value):
                case {"until": int() | float() as until, "made": int() | float() as made} if now < until:
                    kept.append((made, digest))
                case _:
                    self._threads.drop_fact(KIND, digest)
        for _, digest in sorted(kept)[: max(0, len(kept) - MOST_LOGINS)]:
            self._threads.drop_fact(KIND, digest)


def _digest(login: str) -> str:
    return sha256(login.encode("utf-8", "replace")).hexdigest()
