"""A small OpenID provider on this machine: it signs real tokens, checks PKCE, and can be told to misbehave."""

import base64
import json
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

__all__ = ["CLIENT", "SECRET", "TestProvider"]

CLIENT, SECRET = "everlong-app", "the app's secret at the provider"
Spoil = Callable[[dict[str, Any]], dict[str, Any]]


class TestProvider:
    """`with TestProvider() as provider: …`; `provider.spoil` changes what its tokens say, `signer` who signs them."""

    __test__ = False

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.signer: RSAKey | OctKey = self.key
        self.algorithm = "RS256"
        self.spoil: Spoil = lambda claims: claims
        self.described: dict[str, str] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def visit(self, url: str, user: str) -> dict[str, str]:
        """Sign a user in, as a browser that was sent to `url`: what stands in the address that it is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**asked, "user": user}
        return {"code": code, "state": asked["state"], "to": asked["redirect_uri"]}

    def _token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        user = asked["user"]
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": f"subject of {user}", "nonce": asked["nonce"]}
        claims |= {"name": user.title(), "email": f"{user}@boats.example", "email_verified": True}
        claims |= {"iat": now, "exp": now + 300, "groups": ["crew"]}
        return jwt.encode({"alg": self.algorithm, "kid": "one"}, self.spoil(claims), self.signer, ["RS256", "HS256"])

    def _exchanged(self, form: dict[str, str], secret: str) -> tuple[int, dict[str, Any]]:
        asked = self._codes.pop(form.get("code", ""), None)
        proof = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        wanted = f"{CLIENT}:{SECRET}"
        if asked is None or secret != wanted or proof != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        if form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "unused", "token_type": "Bearer", "id_token": self._token(asked)}

    def _handler(provider) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def _answer(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                at = provider.issuer
                if self.path == "/.well-known/openid-configuration":
                    places = {"authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token"}
                    self._answer(200, {"issuer": at, **places, "jwks_uri": f"{at}/keys", **provider.described})
                elif self.path == "/keys":
                    self._answer(200, {"keys": [provider.key.as_dict(private=False)]})
                else:
                    self._answer(404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                basic = self.headers.get("authorization", "").removeprefix("Basic ")
                secret = base64.b64decode(basic).decode()
                self._answer(*provider._exchanged(form, secret))

        return Handler

    def address_of(self, back: dict[str, str]) -> str:
        """Return the address that the browser is sent back to."""
        return f"{back['to']}?{urlencode({name: back[name] for name in ('code', 'state')})}"
