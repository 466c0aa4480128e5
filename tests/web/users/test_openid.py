"""Signing in at an OpenID provider that is real, small and ours; and every way to get in without one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OctKey, RSAKey

from everlong.llm import Answer, ScriptedServer
from everlong.store import MemoryThreads
from everlong.web import Guard
from everlong.web.users.accounts import Logins, User
from everlong.web.users.openid import OpenId, OpenIdProvider
from tests.gateway.processes import ServingProcess
from tests.web.running import PAGE, Page, RunningApp, an_app
from tests.web.users.houses import user_apps
from tests.web.users.provider import CLIENT, SECRET, TestProvider

API = "/everlong/api"
ADDRESS = "http://127.0.0.1:1/"


class Browser(Page):
    """A page that keeps its cookies."""

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Send something, and keep the cookies that come back."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", API + path, json.dumps(body).encode(), self.headers)
            response = connection.getresponse()
            told = json.loads(response.read())
            kept = SimpleCookie(self.headers.get("cookie", ""))
            for cookie in response.headers.get_all("set-cookie") or ():
                kept.load(cookie)
        finally:
            connection.close()
        self.headers["cookie"] = "; ".join(f"{name}={one.value}" for name, one in kept.items() if one.value)
        return response.status, told

    def sign_in(self, provider: TestProvider, user: str) -> tuple[int, Any]:
        """Go to the provider and come back."""
        _, told = self.post("/sign-in", {})
        return self.post("/sign-in", come_back(provider.visit(told["to"], user)))


def come_back(back: dict[str, str]) -> dict[str, Any]:
    return {"code": back["code"], "state": back["state"]}


@contextmanager
def signed(**settings: Any) -> Iterator[tuple[RunningApp, TestProvider, dict[str, float]]]:
    """An app whose users sign in at a provider, and its clock, which may be moved."""
    clock = {"ahead": 0.0}

    def now() -> float:
        import time  # noqa: PLC0415

        return time.time() + clock["ahead"]

    with TestProvider() as provider:
        threads = MemoryThreads()
        openid = OpenId(issuer=provider.issuer, client=CLIENT, secret=SECRET, address=ADDRESS)
        guard = Guard(
            logins=Logins(threads, now),
            provider=OpenIdProvider(replace(openid, **settings), threads, now),
            session=3_600.0,
        )
        with an_app(lambda _: Answer(text="At nine."), threads=threads, guard=guard, apps=user_apps) as (app, _):
            yield app, provider, clock


def browser_of(app: RunningApp) -> Browser:
    return Browser(app.port, dict(PAGE))


def test_users_sign_in_see_their_own_and_sign_out() -> None:
    with signed() as (app, provider, clock):
        ada, bob = browser_of(app), browser_of(app)
        assert ada.ask("GET", f"{API}/state") == (401, {"error": {"kind": "sign_in", "message": "sign in first"}})
        assert ada.sign_in(provider, "ada") == (200, {"user": "Ada"})
        assert bob.sign_in(provider, "bob")[0] == 200
        thread = ada.thread()
        ada.say(thread, "When?")
        assert bob.ask("GET", f"{API}/threads/{thread}")[0] == 404
        state = ada.get(f"{API}/state")
        assert (state["user"], state["login"]) == ("Ada", True)
        again = browser_of(app)  # another browser of the same person
        again.sign_in(provider, "ada")
        assert [one["id"] for one in again.get(f"{API}/threads")["threads"]] == [thread]
        cookie = ada.headers["cookie"]
        ada.post("/logout", {})
        ada.headers["cookie"] = cookie  # who kept it has nothing
        assert ada.ask("GET", f"{API}/threads")[0] == 401
        assert again.ask("GET", f"{API}/threads")[0] == 200
        clock["ahead"] = 3_601.0
        assert again.ask("GET", f"{API}/threads")[0] == 401, "a session ends by itself"


def test_cookies_are_strict_hidden_from_scripts_and_kept_as_digests() -> None:
    with signed(address="https://chat.example/") as (app, provider, _):
        ada = browser_of(app)
        _, told, headers = ada.raw("POST", f"{API}/sign-in", b"{}")
        for part in ("HttpOnly", "SameSite=strict", "Secure"):
            assert part in headers["set-cookie"]
        ada.headers["cookie"] = headers["set-cookie"].partition(";")[0]
        back = provider.visit(json.loads(told)["to"], "ada")
        assert ada.post("/sign-in", come_back(back))[0] == 200
        secret = SimpleCookie(ada.headers["cookie"])["everlong"].value
        stored = app.state.threads.facts("app login")
        assert len(stored) == 1
        assert secret not in json.dumps(stored)
        assert app.state.threads.facts("app sign-in") == {}


def _changed(**fields: Any) -> Any:
    return lambda claims: {name: value for name, value in {**claims, **fields}.items() if value is not None}


#: What a token says that must not be believed.
TOKENS: dict[str, Any] = {
    "another audience": _changed(aud="another-app"),
    "many audiences, for another": _changed(aud=[CLIENT, "another-app"], azp="another-app"),
    "many audiences, for nobody named": _changed(aud=[CLIENT, "another-app"]),
    "no audience": _changed(aud=None),
    "another issuer": _changed(iss="https://evil.example"),
    "no issuer": _changed(iss=None),
    "expired": _changed(exp=1_000_000),
    "no end": _changed(exp=None),
    "made in the future": _changed(iat=99_999_999_999, exp=99_999_999_999),
    "another sign-in's": _changed(nonce="another"),
    "no nonce": _changed(nonce=None),
    "nobody": _changed(sub=None),
    "nobody by name": _changed(sub=""),
}


def test_tokens_that_do_not_fit_let_nobody_in() -> None:
    with signed() as (app, provider, _):
        for name, spoil in TOKENS.items():
            provider.spoil = spoil
            browser = browser_of(app)
            status, told = browser.sign_in(provider, "ada")
            assert (status, told["error"]["kind"]) == (401, "sign_in_failed"), name
            assert browser.ask("GET", f"{API}/threads")[0] == 401, name
        provider.spoil = lambda claims: claims
        assert browser_of(app).sign_in(provider, "ada")[0] == 200


def test_signatures_of_others_let_nobody_in() -> None:
    with signed() as (app, provider, _):
        provider.signer = RSAKey.generate_key(2048, {"kid": "one"})
        assert browser_of(app).sign_in(provider, "ada")[0] == 401
        # A secret that both know signs nothing.
        provider.signer, provider.algorithm = OctKey.import_key(SECRET.encode(), {"kid": "one"}), "HS256"
        assert browser_of(app).sign_in(provider, "ada")[0] == 401
        provider.signer, provider.algorithm = provider.key, "RS256"
        assert browser_of(app).sign_in(provider, "ada")[0] == 200
        provider.key = provider.signer = RSAKey.generate_key(2048, {"kid": "one"})  # keys are changed now and then
        assert browser_of(app).sign_in(provider, "ada")[0] == 200


def test_a_sign_in_is_finished_once_in_its_own_browser_and_in_time() -> None:
    with signed() as (app, provider, clock):
        ada, eve = browser_of(app), browser_of(app)
        begun = ada.post("/sign-in", {})[1]["to"]
        back = come_back(provider.visit(begun, "ada"))
        # Somebody else's browser, with a sign-in of its own under way or not.
        assert browser_of(app).post("/sign-in", back)[1]["error"]["kind"] == "sign_in_failed"
        begun = ada.post("/sign-in", {})[1]["to"]
        back = come_back(provider.visit(begun, "ada"))
        eve.post("/sign-in", {})
        assert eve.post("/sign-in", back)[0] == 401
        # Eve gives Ada the code of her own account.
        hers = come_back(provider.visit(eve.post("/sign-in", {})[1]["to"], "eve"))
        ada.post("/sign-in", {})
        assert ada.post("/sign-in", hers)[0] == 401
        # Replayed.
        pending = ada.post("/sign-in", {})[1]["to"]
        cookie = ada.headers["cookie"]
        back = come_back(provider.visit(pending, "ada"))
        assert ada.post("/sign-in", back)[0] == 200
        replay = Browser(app.port, {**PAGE, "cookie": cookie})
        assert replay.post("/sign-in", back)[0] == 401
        # Made up, without a state, too long, too late.
        for wrong in ({"code": "x", "state": "y"}, {"code": "x"}, {"code": "x" * 9_000, "state": "y"}):
            assert eve.post("/sign-in", wrong)[0] in (400, 401)
        back = come_back(provider.visit(eve.post("/sign-in", {})[1]["to"], "eve"))
        clock["ahead"] = 700.0
        assert eve.post("/sign-in", back)[0] == 401


def test_without_the_header_of_the_page_nothing_begins() -> None:
    with signed() as (app, _, _):
        assert Page(app.port).raw("POST", f"{API}/sign-in", b"{}", {})[0] == 403


#: Settings, what the token says, and whether the user is let in.
LET_IN: dict[str, tuple[dict[str, Any], Any, int]] = {
    "a domain": ({"domains": ("boats.example",)}, _changed(), 200),
    "in capitals": ({"domains": ("boats.example",)}, _changed(email="ada@Boats.Example"), 200),
    "another domain": ({"domains": ("ships.example",)}, _changed(), 403),
    "a longer domain": ({"domains": ("boats.example",)}, _changed(email="ada@boats.example.evil.example"), 403),
    "not verified": ({"domains": ("boats.example",)}, _changed(email_verified=False), 403),
    "verified in words": ({"domains": ("boats.example",)}, _changed(email_verified="true"), 403),
    "no mail": ({"domains": ("boats.example",)}, _changed(email=None), 403),
    "a group": ({"groups": ("crew", "captains")}, _changed(), 200),
    "another group": ({"groups": ("captains",)}, _changed(), 403),
    "a group as text": ({"groups": ("crew",)}, _changed(groups="crew"), 403),
    "no groups": ({"groups": ("crew",)}, _changed(groups=None), 403),
}


@pytest.mark.parametrize("case", LET_IN)
def test_domains_and_groups_decide_who_is_let_in(case: str) -> None:
    settings, spoil, expected = LET_IN[case]
    with signed(**settings) as (app, provider, _):
        provider.spoil = spoil
        browser = browser_of(app)
        assert browser.sign_in(provider, "ada")[0] == expected
        assert browser.ask("GET", f"{API}/threads")[0] == (200 if expected == 200 else 401)


def test_a_provider_that_is_another_or_away_is_told_in_one_line() -> None:
    with signed() as (app, provider, _):
        provider.described = {"issuer": "https://evil.example"}
        assert browser_of(app).post("/sign-in", {})[0] == 401
        provider.described = {"token_endpoint": "http://evil.example/token"}
        assert browser_of(app).post("/sign-in", {})[0] == 401
    with signed(issuer="http://127.0.0.1:9") as (app, _, _):
        status, told = browser_of(app).post("/sign-in", {})
        assert (status, told["error"]["kind"]) == (502, "sign_in_away")


def test_a_login_of_another_kind_is_none() -> None:
    threads = MemoryThreads()
    logins = Logins(threads)
    password, user = logins.add(User(), 60.0), logins.add(User("issuer\nada", "Ada"), 60.0)
    with TestProvider() as provider:
        openid = OpenId(issuer=provider.issuer, client=CLIENT, secret=SECRET, address=ADDRESS)
        signed_in = Guard(logins=logins, provider=OpenIdProvider(openid, threads))
        for guard, right, wrong in ((signed_in, user, password), (Guard(password="x", logins=logins), password, user)):
            with an_app(threads=threads, guard=guard, apps=user_apps) as (app, _):
                told = [
                    Page(app.port, {**PAGE, "cookie": f"everlong={login}"}).raw("GET", f"{API}/threads")[0]
                    for login in (right, wrong, "", "made-up", "x" * 5_000)
                ]
                assert told == [200, 401, 401, 401, 401]


def test_a_server_with_a_provider_lets_in_who_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_OIDC_SECRET", SECRET)
    monkeypatch.setenv("EVERLONG_SECRET", "a secret of the operator, long enough")
    with TestProvider() as provider, ScriptedServer(lambda _: Answer(text="At nine.")) as model:
        users = f'[users]\nby = "oidc"\nissuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\naddress = "{ADDRESS}"\n'
        (tmp_path / "serve.toml").write_text(f"access_log = false\n{users}")
        store = tmp_path / "threads.db"
        options = ("--config", "serve.toml", "--upstream", model.url, "--store", str(store))
        with ServingProcess(*options, folder=tmp_path) as serving:
            ada = Browser(serving.port, dict(PAGE))
            assert ada.ask("GET", f"{API}/state")[0] == 401
            assert ada.sign_in(provider, "ada")[0] == 200
            thread = ada.thread()
            ada.say(thread, "When?")
            kept = dict(ada.headers)
        with ServingProcess(*options, folder=tmp_path) as serving:  # logins outlive the process
            assert len(Browser(serving.port, kept).rows(thread)) == 2
        assert SECRET not in "".join(serving.errors)
