"""The environment of a command: secrets by name and by value are left out, and nothing else is."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.agent.tools.environment import SETTINGS, environment_in, environment_without_secrets

BY_NAME = """
    OPENAI_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID GITHUB_TOKEN GITHUB_PAT CLIENT_SECRET DB_PASSWORD PGPASSWORD
    MYSQL_PWD TOKEN KEY my_api_key GOOGLE_CREDENTIALS SENTRY_DSN REGISTRY_AUTH npm_config__auth GHTOKEN DB_PASS
    NPM_CONFIG_//registry.npmjs.org/:_authToken SECRET_KEY_BASE OPENAI_API_KEY_2 OPENAI_API_KEY_PROD SESSION_COOKIE
    ENCRYPTION_KEY_BASE64 GIT_ASKPASS STRIPE_WEBHOOK_SECRET APIKEY SSH_KEY_PASSPHRASE MyPassword VAULT_JWT
""".split()  # noqa: SIM905 - a list of names reads better in lines
BY_VALUE = {
    "DATABASE_URL": "postgres://me:hunter2@db.example.org/shop",
    "HTTPS_PROXY": "http://me:hunter2@proxy.example.org:3128",
    "PIP_INDEX_URL": "https://__token__:pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw@index.example.org/simple",
    "REDIS": "redis://:hunter2@cache:6379/0",
    "MY_SERVICE": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "DEPLOY": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123456789abcdef\n-----END RSA PRIVATE KEY-----",
    "SIGNED": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
}
HARMLESS = {
    "PATH": "/usr/bin:/bin",
    "PWD": "/home/me",
    "OLDPWD": "/",
    "KEYBOARD": "us",
    "MONKEY": "1",
    "KUBECONFIG": "/home/me/.kube/config",
    "VAULT_TOKEN_FILE": "/run/token",
    "PATTERN": "*.py",
    "COMPASS": "north",
    "TOKENIZERS_PARALLELISM": "false",
    "SSH_AUTH_SOCK": "/run/agent",
    "OAUTH_TOKEN_URL": "https://example.org/token",
    "DATABASE_HOST": "postgres://db.example.org/shop",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36",
    "LANG": "de_DE.UTF-8",
}


@pytest.mark.parametrize("name", BY_NAME)
def test_secrets_by_name_are_left_out(name: str) -> None:
    assert environment_without_secrets({name: "s3cret", **HARMLESS}) == HARMLESS | SETTINGS


@pytest.mark.parametrize("name", BY_VALUE)
def test_secrets_by_value_are_left_out_whatever_their_name(name: str) -> None:
    assert environment_without_secrets({name: BY_VALUE[name], **HARMLESS}) == HARMLESS | SETTINGS


@given(st.dictionaries(st.text("ABCKEYTOKNPW_:/ab1", min_size=1), st.text(max_size=80)))
def test_nothing_is_added_or_changed_but_the_settings(environment: dict[str, str]) -> None:
    kept = environment_without_secrets(environment)
    assert SETTINGS.items() <= kept.items()
    assert kept.items() - SETTINGS.items() <= environment.items()
    assert environment_without_secrets(kept) == kept


def test_in_a_sandbox_nothing_leads_to_the_users_folders_and_services() -> None:
    services = {
        "SSH_AUTH_SOCK": "/run/a",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/b",
        "XDG_CONFIG_HOME": "/home/me/c",
    }
    kept = environment_in(Path("/p"), {**services, "HOME": "/home/me", "PATH": "/bin"})
    assert kept == {"HOME": "/p/home", "TMPDIR": "/p/tmp", "PATH": "/bin"}
