"""Sign in with an OpenID provider: authorisation code with PKCE, by authlib; the tokens are checked by joserfc.

The page asks for the provider's address and goes there. The provider sends the browser back to the page, with a code,
which the page gives to the server. A sign-in belongs to the browser that began it, and can be finished only once.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
from authlib.common.security import generate_token  # type: ignore[import-untyped]
from authlib.integrations.base_client.errors import OAuthError as ClientError  # type: ignore[import-untyped]
from authlib.integrations.httpx_client import AsyncOAuth2Client  # type: ignore[import-untyped]
from authlib.oauth2.base import OAuth2Error  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from everlong.core import JsonObject, JsonText
from everlong.engine import Threads
from everlong.errors import Refused
from everlong.web.fields import stored_object
from everlong.web.users.accounts import User

__all__ = ["OpenId", "OpenIdProvider"]

KIND = "app sign-in"  # of the facts
PENDING_SECONDS = 600.0  # that a person may take at the provider
LEEWAY = 60  # seconds by which clocks may differ
FRESH = 3_600.0  # seconds that the provider's description and keys are used
LONGEST = 4_000  # characters of a code or a state
HTTP_SECONDS = 10.0
#: Signatures by a key that only the provider has. Never "none", and never a secret that both know.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
NEEDED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenId:
    """The provider, and how it knows this app. `address` is the app's own, to which browsers are sent back.

    Without `domains` and `groups`, every account of the provider may use the app.
    """

    issuer: str
    client: str
    secret: str
    address: str
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    domains: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    groups_claim: str = "groups"


class OpenIdProvider:
    """Signs users in. Belongs to one event loop; what is pending is in the store, so any process may finish it."""

    def __init__(self, settings: OpenId, threads: Threads, clock: Callable[[], float] = time) -> None:
        self._settings = settings
        self._threads = threads
        self._clock = clock
        self._described: tuple[float, JsonObject] = (0.0, {})
        self._keys: tuple[float, KeySet | None] = (0.0, None)

    @property
    def secure(self) -> bool:
        """Whether browsers reach the app by https."""
        return self._settings.address.startswith("https://")

    async def begin(self) -> tuple[str, str]:
        """Return the address to which the browser goes, and a text for its cookie, which is needed to finish."""
        described = await self._description()
        browser, nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(32), generate_token(64)
        async with self._client() as client:
            url, state = client.create_authorization_url(
                str(described["authorization_endpoint"]), code_verifier=verifier, nonce=nonce
            )
        pending = {"browser": _digest(browser), "nonce": nonce, "verifier": verifier, "until": self._until()}
        await asyncio.to_thread(self._keep, _digest(str(state)), json.dumps(pending))
        return str(url), browser

    async def finish(self, code: str, state: str, browser: str) -> User:
        """Return who signed in. Raises Refused for anything that does not fit together."""
        if max(len(code), len(state)) > LONGEST:
            raise _refused("the code or the state is too long")
        pending = await asyncio.to_thread(self._take, state)
        if not browser or pending.get("browser") != _digest(browser):
            raise _refused("it was started in another browser or is already finished; start again")
        if self._clock() > float(cast("float", pending["until"])):
            raise _refused("it took too long; start again")
        described = await self._description()
        try:
            async with self._client() as client:
                token = await client.fetch_token(
                    str(described["token_endpoint"]), code=code, code_verifier=str(pending["verifier"])
                )
        except (httpx.HTTPError, OAuth2Error, ClientError, ValueError) as error:
            raise _refused(f"the provider did not accept the code ({type(error).__name__})") from None
        return self._user(await self._claims(str(token.get("id_token", "")), str(pending["nonce"])))

    def _keep(self, key: str, value: JsonText) -> None:
        for name, kept in self._threads.facts(KIND).items():  # those that nobody finished
            if float(cast("float", stored_object(kept).get("until", 0.0))) < self._clock():
                self._threads.drop_fact(KIND, name)
        self._threads.keep_fact(KIND, key, value)

    def _take(self, state: str) -> JsonObject:
        """Return what was begun under a state, once for all processes. Raises Refused if there is nothing."""
        found: list[JsonText] = []

        def change(value: JsonText | None) -> None:
            found[:] = [] if value is None else [value]

        self._threads.change_fact(KIND, _digest(state), change)
        if not found:
            raise _refused("it was started in another browser or is already finished; start again")
        return stored_object(found[0])

    def _until(self) -> float:
        return self._clock() + PENDING_SECONDS

    def _client(self) -> AsyncOAuth2Client:
        settings = self._settings
        return AsyncOAuth2Client(
            settings.client,
            settings.secret or None,
            scope=" ".join(settings.scopes),
            redirect_uri=settings.address,
            code_challenge_method="S256",
            timeout=HTTP_SECONDS,
            follow_redirects=False,
        )

    async def _description(self) -> JsonObject:
        """Return the provider's description of itself. Raises Refused if it is not the provider in the settings."""
        since, described = self._described
        if described and self._clock() - since < FRESH:
            return described
        issuer = self._settings.issuer
        described = await _fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if described.get("issuer") != issuer or not all(isinstance(described.get(name), str) for name in NEEDED):
            raise _refused("the provider reports another issuer than the settings")
        for name in NEEDED[1:]:
            if not _is_safe(str(described[name])):
                raise _refused("the provider's addresses are not https")
        self._described = (self._clock(), described)
        return described

    async def _claims(self, token: str, nonce: str) -> JsonObject:
        """Return the claims of a token, once it is known to be valid, and from this provider for this sign-in."""
        try:
            try:
                claims = jwt.decode(token, await self._key_set(), ALGORITHMS).claims
            except (JoseError, ValueError):  # the provider may have changed its keys
                claims = jwt.decode(token, await self._key_set(refresh=True), ALGORITHMS).claims
            jwt.JWTClaimsRegistry(
                now=int(self._clock()),
                leeway=LEEWAY,
                iss={"essential": True, "value": self._settings.issuer},
                aud={"essential": True, "value": self._settings.client},
                sub={"essential": True},
                exp={"essential": True},
                iat={"essential": True},
                nonce={"essential": True, "value": nonce},
            ).validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise _refused(f"the provider's token cannot be trusted ({type(error).__name__})") from None
        audience = claims["aud"]
        many = isinstance(audience, list) and len(audience) > 1
        if (many or "azp" in claims) and claims.get("azp") != self._settings.client:
            raise _refused("the provider's token is for another app")
        return cast("JsonObject", claims)

    async def _key_set(self, *, refresh: bool = False) -> KeySet:
        since, keys = self._keys
        if keys is not None and not refresh and self._clock() - since < FRESH:
            return keys
        described = await self._description()
        fetched = await _fetched(str(described["jwks_uri"]))
        keys = KeySet.import_key_set(cast("Any", fetched))
        self._keys = (self._clock(), keys)
        return keys

    def _user(self, claims: JsonObject) -> User:
        """Return the user of a token. Raises Refused if this app does not let the user in."""
        settings, subject = self._settings, claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise _refused("the provider's token names no user")
        email = str(claims.get("email") or "")
        if settings.domains:
            verified = claims.get("email_verified") is True
            if not verified or email.rpartition("@")[2].lower() not in settings.domains:
                raise Refused("this account is not allowed to use the app", status=403, kind="not_allowed")
        if settings.groups:
            given = claims.get(settings.groups_claim)
            if not isinstance(given, list) or not set(settings.groups) & {str(group) for group in given}:
                raise Refused("this account is not allowed to use the app", status=403, kind="not_allowed")
        shown = next((str(claims[name]) for name in ("name", "preferred_username", "email") if claims.get(name)), "")
        return User(f"{settings.issuer}\n{subject}", (shown or subject)[:200])


async def _fetched(url: str) -> JsonObject:
    try:
        async with httpx.AsyncClient(timeout=HTTP_SECONDS, follow_redirects=False) as client:
            answer = await client.get(url)
            answer.raise_for_status()
            fetched = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise Refused(
            f"the sign-in provider is not responding ({type(error).__name__})", status=502, kind="sign_in_away"
        ) from None
    if not isinstance(fetched, dict):
        raise Refused("the sign-in provider sent an invalid response", status=502, kind="sign_in_away")
    return fetched


def _is_safe(url: str) -> bool:
    """Whether an address is https, or of this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1"))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _refused(reason: str) -> Refused:
    return Refused(f"sign-in failed: {reason}", status=401, kind="sign_in_failed")
