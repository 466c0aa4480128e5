"""The environment of a command: all variables but those that hold secrets.

A variable is left out because of its name or its value: a password in an address is a secret under any name. Variables
that only say where a secret is (KUBECONFIG, a file's path) stay; the sandbox hides the file. In a sandbox, variables
that lead to the user's folders and services are left out too.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from everlong.summarize import redacted

__all__ = ["environment_in", "environment_without_secrets"]

#: No pager, no colours and no questions: nobody watches.
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}
#: The words of a name. authToken has two, like AUTH_TOKEN.
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: A name with one of these words belongs to a secret, unless its last word is in `HARMLESS`.
ANYWHERE = frozenset(
    (
        *("secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials", "token", "tokens"),
        *("apikey", "apikeys", "jwt", "askpass"),
    )
)
#: These count only as the last word: elsewhere, a key may be on a keyboard, and PAT may begin a pattern.
AT_END = frozenset(("key", "keys", "auth", "dsn", "pat", "pass", "cookie", "cookies", "pwd"))
BEFORE_KEY = frozenset(("api", "access", "private", "secret", "encryption", "signing", "master", "account", "auth"))
#: Last words of names that only describe a secret: where it is, how long it is valid.
HARMLESS = frozenset(
    (
        *("file", "path", "dir", "url", "uri", "endpoint", "name", "type", "enabled"),
        *("count", "limit", "max", "min", "ttl", "expiry", "timeout"),
    )
)
#: Passwords that are written together with another word, as in PGPASSWORD.
JOINED = re.compile(r"(?:password|passwd|token|secret|apikey|accesskey|privatekey)s?$", re.IGNORECASE)
#: Variables that lead to the user's folders, or to services that could act outside the sandbox for a command.
SERVICES = re.compile(r"XDG_\w+|\w+_AUTH_SOCK|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DOCKER_HOST|GPG_AGENT_INFO")
#: These end with PWD but hold no secret: they name the shell's folder.
PLAIN = ("PWD", "OLDPWD")


def environment_without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command may see, with settings for a non-interactive program.

    Example: {"PATH": "/bin", "OPENAI_API_KEY": "sk-…", "DATABASE_URL": "postgres://me:pw@db/x"} -> PATH and settings
    """
    kept = {name: text for name, text in environment.items() if not _is_secret(name) and redacted(text) == text}
    return kept | SETTINGS


def environment_in(private: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for a sandbox, whose HOME and TMPDIR are in a private folder."""
    kept = {name: text for name, text in environment.items() if not SERVICES.fullmatch(name)}
    return kept | {"HOME": str(private / "home"), "TMPDIR": str(private / "tmp")}


def _is_secret(name: str) -> bool:
    """Return whether a name is that of a secret. Example: GITHUB_PAT, SECRET_KEY_BASE, npm's :_authToken -> True"""
    words = [word.lower() for word in WORDS.findall(name)]
    if not words or name in PLAIN:
        return False
    keyed = any(first in BEFORE_KEY and second.startswith("key") for first, second in pairwise(words))
    if words[-1] in HARMLESS:
        return False
    return keyed or not ANYWHERE.isdisjoint(words) or words[-1] in AT_END or JOINED.search(name) is not None
