"""The corpus: every kind of secret in every suitable surrounding, from a seed; a third of the kinds is held out.

The held-out kinds were drawn before any rule was written for them, and no rule was written by looking at them: they
show what rules find of secrets that nobody thought of. `HELD_OUT` is fixed; a new kind may be used for development.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from everlong.lab.secrets.forms import FORMS
from everlong.lab.secrets.kind import Kind, Made
from everlong.lab.secrets.surroundings import placed
from everlong.lab.secrets.vendors import VENDORS

__all__ = ["DRAWN_FROM", "HELD_OUT", "KINDS", "SECRETS_SEED", "Sample", "samples"]

SECRETS_SEED = 20260501
KINDS: tuple[Kind, ...] = (*VENDORS, *FORMS)

#: A third of the 92 kinds, as `Random(SECRETS_SEED).sample` drew them from their sorted names.
HELD_OUT = frozenset(
    {
        "age",
        "airtable",
        "alibaba",
        "anthropic",
        "azure-client-secret",
        "azure-connection",
        "azure-storage-key",
        "basic",
        "bitbucket",
        "cloudflare",
        "connection-string",
        "digitalocean",
        "docker",
        "docker-config",
        "fly",
        "github-fine-grained",
        "google-api-key",
        "google-oauth-secret",
        "heroku",
        "jwt",
        "linear",
        "password-flag",
        "password-hash",
        "password-in-language",
        "password-in-sql",
        "postman",
        "sentry",
        "shopify",
        "slack-webhook",
        "vault",
    }
)
DRAWN_FROM = 92  # kinds that existed when it was drawn


@dataclass(frozen=True, slots=True)
class Sample:
    """A secret in its surroundings: the text, and the parts that must be removed."""

    kind: str
    surrounding: str
    made: Made


def samples(kind: Kind, each: int, seed: int = SECRETS_SEED) -> Iterator[Sample]:
    """Yield this many secrets of a kind, in one surrounding after the other. The same seed always gives the same."""
    random = Random(f"{seed} {kind.name}")
    for number in range(each):
        surrounding, made = placed(random, kind, number)
        yield Sample(kind.name, surrounding, made)
