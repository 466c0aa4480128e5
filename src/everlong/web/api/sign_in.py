"""Endpoints by which a browser logs in and out: with the app's password, or at an OpenID provider.

A sign-in has two steps. The page asks where to sign in and goes there; when it is back, it sends the provider's code.
Both are requests of the page itself, so all cookies are strict: no other site causes them to be sent.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from everlong.core import Json
from everlong.errors import Refused
from everlong.web.api.endpoint import ApiRequest, json_response
from everlong.web.api.guard import COOKIE, LOGIN_SECONDS, Guard
from everlong.web.fields import optional_text, required_text

__all__ = ["SignInEndpoints"]

PENDING = "everlong-sign-in"  # the cookie of a browser that is at the provider
PENDING_SECONDS = 600
LONGEST = 4_000  # characters of a code or a state


class SignInEndpoints:
    """Endpoints that need no login."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def log_in(self, request: ApiRequest) -> "Json | Response":
        """Exchange the password for a cookie."""
        response = json_response({})
        if self._guard.password and self._guard.provider is None:
            client = request.http.client
            address = client.host if client else ""
            password = required_text(request.body, "password")
            login = await asyncio.to_thread(self._guard.log_in, password, address)
            self._set(request.http, response, COOKIE, login, int(LOGIN_SECONDS))
        return response

    async def sign_in(self, request: ApiRequest) -> "Json | Response":
        """Return where to sign in; if the body has the provider's `code` and `state`, exchange them for a cookie."""
        guard, provider = self._guard, self._guard.provider
        if provider is None:
            raise Refused("this server has no sign-in provider", status=404, kind="no_provider")
        code = optional_text(request.body, "code", most=LONGEST)
        if not code:
            url, browser = await provider.begin()
            response = json_response({"to": url})
            self._set(request.http, response, PENDING, browser, PENDING_SECONDS)
            return response
        state = required_text(request.body, "state", most=LONGEST)
        user = await provider.finish(code, state, request.http.cookies.get(PENDING, ""))
        login = await asyncio.to_thread(guard.logins.add, user, guard.session)
        response = json_response({"user": user.name})
        self._set(request.http, response, COOKIE, login, int(guard.session))
        response.delete_cookie(PENDING)
        return response

    async def log_out(self, request: ApiRequest) -> "Json | Response":
        """End the login of the cookie, in every process."""
        await asyncio.to_thread(self._guard.logins.end, request.http.cookies.get(COOKIE, ""))
        response = json_response({})
        response.delete_cookie(COOKIE)
        return response

    def _set(self, request: Request, response: Response, name: str, value: str, seconds: int) -> None:
        provider = self._guard.provider
        secure = request.url.scheme == "https" or (provider is not None and provider.secure)
        response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="strict", secure=secure)
