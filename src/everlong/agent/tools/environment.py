"""The environment of a command: all variables but those that hold secrets.

A variable is left out for its name or for its value: a password in an address is one under any name. What only says
where a secret lies (KUBECONFIG, a file's path) stays; the file is for the sandbox to hide. In a sandbox, variables that
lead to the user's folders and services go as well.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from everlong.summarize import redacted

__all__ = ["environment_in", "environment_without_secrets"]

#: No pager, no colours and no questions: nobody watches.
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}
#: The words of a name: authToken is two, as AUTH_TOKEN is.
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Wherever they stand in a name it is one of a secret, unless it ends in `HARMLESS`.
ANYWHERE = frozenset(
    (
        *("secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials", "token", "tokens"),
        *("apikey", "apikeys", "jwt", "askpass"),
    )
)
#: Only at the end: a key may be one of a keyboard, PAT is the beginning of a pattern.
AT_END = frozenset(("key", "keys", "auth", "dsn", "pat", "pass", "cookie", "cookies", "pwd"))
BEFORE_KEY = frozenset(("api", "access", "private", "secret", "encryption", "signing", "master", "account", "auth"))
#: What is told about a secret: where it lies, how long it counts.
HARMLESS = frozenset(
    (
        *("file", "path", "dir", "url", "uri", "endpoint", "name", "type", "enabled"),
        *("count", "limit", "max", "min", "ttl", "expiry", "timeout"),
    )
)
#: Passwords that are written together with another word, as in PGPASSWORD.
JOINED = re.compile(r"(?:password|passwd|token|secret|apikey|accesskey|privatekey)s?$", re.IGNORECASE)
#: Variables that lead to services of the user, which would act for a command outside, and to the user's folders.
SERVICES = re.compile(r"XDG_\w+|\w+_AUTH_SOCK|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DOCKER_HOST|GPG_AGENT_INFO")
#: One word, and no secret: where the shell is.
PLAIN = ("PWD", "OLDPWD")


def environment_without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a command may see, with settings for a program that nobody watches.

    Example: {"PATH": "/bin", "OPENAI_API_KEY": "sk-…", "DATABASE_URL": "postgres://me:pw@db/x"} -> PATH and settings
    """
    kept = {name: text for name, text in environment.items() if not _is_secret(name) and redacted(text) == text}
    return kept | SETTINGS


def environment_in(private: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for a sandbox, whose HOME and TMPDIR are in a private folder."""
    kept = {name: text for name, text in environment.items() if not SERVICES.fullmatch(name)}
    return kept | {"HOME": str(private / "home"), "TMPDIR": str(private / "tmp")}


def _is_secret(name: str) -> bool:
    """Whether a name is one of a secret. Example: GITHUB_PAT, SECRET_KEY_BASE, npm's :_authToken -> True"""
    words = [word.lower() for word in WORDS.findall(name)]
    if not words or name in PLAIN:
        return False
    keyed = any(first in BEFORE_KEY and second.startswith("key") for first, second in pairwise(words))
    if words[-1] in HARMLESS:
        return False
    return keyed or not ANYWHERE.isdisjoint(words) or words[-1] in AT_END or JOINED.search(name) is not None
