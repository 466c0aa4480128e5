"""Keep the sources that people add in the store, encrypted with a secret of the operator that is not in the store.

Each owner has a separate key, derived from that secret, so a copy in another owner's place cannot be decrypted.
"""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["Vault"]

KIND, KEY = "app sealed", "sources"  # of the fact
SHORTEST_SECRET = 16  # characters


class Vault:
    """The encrypted text of one owner. Reads and writes the store; safe in any thread. A short secret: InputError."""

    def __init__(self, threads: Threads, secret: str, owner: str) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise InputError(f"EVERLONG_SECRET must be a random text of at least {SHORTEST_SECRET} characters")
        derived = HKDF(hashes.SHA256(), 32, salt=None, info=f"everlong sources {owner}".encode()).derive(
            secret.encode()
        )
        self._threads = threads
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def read(self) -> str:
        """Return what is kept; "" if there is nothing, or it was encrypted with another secret."""
        kept = self._threads.fact(KIND, KEY)
        try:
            return "" if kept is None else self._fernet.decrypt(_text(kept)).decode()
        except (InvalidToken, ValueError):
            return ""

    def write(self, text: str) -> None:
        """Keep a text."""
        self._threads.keep_fact(KIND, KEY, f'"{self._fernet.encrypt(text.encode()).decode()}"')


def _text(value: JsonText) -> bytes:
    return value.strip('"').encode()
