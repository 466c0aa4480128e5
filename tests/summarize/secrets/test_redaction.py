"""Secrets leave a text, and code that speaks of them stays. All keys here are made up, and put together as they run."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.lab.secrets.corpus import KINDS, Sample, samples
from everlong.lab.secrets.measure import is_left_over
from everlong.lab.secrets.ordinary import ordinary_lines
from everlong.summarize.secrets.redaction import OVERLAP, REDACTED, redacted
from everlong.summarize.text import PIECE

MADE_UP = "a1B2c3D4e5F6g7H8i9J0kLmN"
LETTERS = "aBcDeFgHiJkLmNoPqRsT"

#: name, text with "@@" where the secret stands, the secret.
SECRETS = [
    ("openai", "use @@ for now", "sk-" + MADE_UP),
    ("openai project", "key is @@.", "sk-proj-" + MADE_UP * 3),
    ("anthropic", "export X=@@", "sk-ant-api03-" + MADE_UP * 3),
    ("stripe", "charge with @@", "sk_live_" + MADE_UP),
    ("github", "remote: @@", "ghp_" + MADE_UP + MADE_UP),
    ("github fine", "@@", "github_pat_" + MADE_UP + "_" + MADE_UP),
    ("gitlab", "git push @@", "glpat-" + MADE_UP),
    ("slack", "SLACK @@", "xoxb-" + "123456789012-" + MADE_UP),
    ("slack hook", "post to https://hooks.slack.com/services/@@", "T0001/B0002/" + MADE_UP),
    ("aws id", "AWS: @@", "AKIA" + "A1B2C3D4E5F6G7H8"),
    ("aws secret", "aws_secret_access_key = @@", "wJalr/XUtnFEMI+K7MDENG" + "bPxRfiCY12"),
    ("google", "?key=@@", "AIza" + MADE_UP + MADE_UP),
    ("hugging face", "login(@@)", "hf_" + MADE_UP + MADE_UP),
    ("pypi", "twine -p @@", "pypi-" + MADE_UP + MADE_UP),
    ("web token", "cookie @@", "eyJhbGciOiJI." + "eyJzdWIiOiIx." + MADE_UP),
    ("bearer", "Authorization: Bearer @@", MADE_UP),
    ("basic", "authorization: basic @@", "dXNlcjpwYXNzd29yZA" + "=="),
    ("url", "postgres://@@@db.example.org:5432/app", "admin:" + "s3cr3t!pw"),
    ("url token", "git clone https://@@@example.org/a/b.git", MADE_UP),
    ("json argument", '{"host": "db", "password": "@@"}', "hunter" + "two"),
    ("escaped json", '{"command": "curl -d \\"{\\\\\\"token\\\\\\": \\\\\\"@@\\\\\\"}\\""}', MADE_UP),
    ("environment", "DB_PASSWORD=@@ ./run", "correcthorse"),
    ("yaml", "  db_password: @@\n  db_user: app", "pa55word"),
    ("toml", "api_key = '@@'", "abcd" + "1234efgh"),
    ("python", 'client = Client(api_key="@@", timeout=3)', MADE_UP),
    ("flag", "mysql --password @@ -h db", "hunter" + "two"),
    ("header", "curl -H 'X-Api-Key: @@' https://example.org", MADE_UP),
    ("query", "GET /v1?user=3&access_token=@@&page=2", MADE_UP),
    ("cookie", "Set-Cookie: @@\r\nHost: a", "session=" + MADE_UP + "; Path=/"),
    ("curl user", "curl -u admin:@@ https://example.org", "s3cr" + "et"),
    ("prose", "By the way, the password is @@, keep it.", "tr0ub4dor"),
    ("chinese", "数据库密码：@@，不要外传", "abc" + "12345"),
    ("chinese prose", "密码是@@。", "Qwerty" + "789"),
    ("chinese key", "API密钥：@@", MADE_UP),
    ("pin", "密码: @@", "20260" + "315"),
    ("phrase", 'passphrase = "@@"', "correct horse battery staple"),
    ("markdown", "**Password:** `@@`", "pa55word"),
    ("long value", "token=@@ end", "Z9" * 3_000),
    ("code inside", 'login(token=get(password="@@"))', "pa55word"),
    (
        "private key",
        "key:\n@@\nend",
        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE" + MADE_UP + "\n-----END RSA " + "PRIVATE KEY-----",
    ),
    (
        "private key cut off",
        "@@ and then some words",
        "-----BEGIN " + "PRIVATE KEY-----\n" + (MADE_UP * 2 + "\n") * 400 + MADE_UP,
    ),
]

#: What must stay as it is.
CODE = [
    "token = next(tokens)",
    "password: str",
    'api_key=os.environ["OPENAI_API_KEY"]',
    'api_key = os.getenv("API_KEY", "")',
    "secret_key = settings.SECRET_KEY",
    "token: Optional[str] = None",
    "def login(user: str, password: str) -> Token:",
    "if token == expected_token:",
    "max_tokens=4096, temperature=0.2",
    '{"max_tokens": 128000, "token_count": 51234}',
    "token: 42",
    "self._token = token",
    "const token = req.headers.authorization;",
    "apiKey: process.env.API_KEY,",
    "password = getpass.getpass()",
    "OPENAI_API_KEY=$OPENAI_API_KEY",
    "API_KEY=${API_KEY:-}",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    'api_key="YOUR_API_KEY"',
    'api_key="your-key-here"',
    "api_key=<your key>",
    "Authorization: Bearer $TOKEN",
    'headers = {"Authorization": f"Bearer {token}"}',
    "uses bearer authentication, not basic authentication",
    '{"password": {"type": "string"}}',
    '{"type": "object", "properties": {"token": {"type": "string"}}}',
    '"token": "string"',
    '{"api_key": null, "secret": false}',
    "--token TOKEN  the token to use",
    "docker login --password-stdin",
    "Password must be at least 8 characters long.",
    "password: must contain 1 digit",
    "The token is refreshed every 15 minutes.",
    "token: uint256",
    "pwd=/home/dev/project",
    "secret: base64",
    ".sk-fading-circle-container { }",
    "risk-adjusted-return-estimate-2024",
    "git@github.com:acme/app.git",
    "https://example.org:8080/a@b",
    "postgres://$USER:$PASSWORD@db/app",
    "from hf_hub_download_with_retries_and_more import x",
    "密码错误，请重新输入",
    "请输入密码：",
    "密码：至少八位",
    "令牌是什么？",
    "for key, token in zip(keys, tokens):",
    "private_key = load_pem_private_key(data)",
    "tokens: list[Token] = []",
    "password=password, token=token",
    "token := lexer.Next()",
    "credentials: 'include'",
    "token: refresh_token2",
    "api_key: old_key_1,",
]


@pytest.mark.parametrize(("text", "secret"), [(row[1], row[2]) for row in SECRETS], ids=[row[0] for row in SECRETS])
def test_secrets_leave_and_the_rest_stays(text: str, secret: str) -> None:
    before, _, after = text.partition("@@")
    cleaned = redacted(before + secret + after)
    assert REDACTED in cleaned
    pieces = [secret[at : at + 6] for at in range(0, max(1, len(secret) - 5), 6)]
    assert not [piece for piece in pieces if piece in cleaned.replace(before, "").replace(after, "")]
    assert cleaned.endswith(after.lstrip("@")[-8:])


@pytest.mark.parametrize("code", CODE)
def test_code_and_prose_stay(code: str) -> None:
    assert redacted(code) == code


@given(
    st.lists(
        st.sampled_from([*(a.replace("@@", b) for _, a, b in SECRETS), *CODE, "\ud83d", "\x00", "İ", "\n"]), max_size=6
    ),
    st.sampled_from(["", " ", "\n", "="]),
)
def test_redaction_never_raises_and_has_nothing_left_to_do(texts: list[str], between: str) -> None:
    once = redacted(between.join(texts))
    assert redacted(once) == once


#: Without those that ask for a password: what stands alone in the line after them is one.
ORDINARY = [line for line in ordinary_lines(7, 1) if not line.endswith((":", "："))]
SAMPLES = [sample for kind in KINDS for sample in samples(kind, 2, seed=7)]


@given(st.lists(st.sampled_from(ORDINARY), max_size=40), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_a_text_without_secrets_is_the_same_text(lines: list[str], between: str) -> None:
    text = between.join(lines)
    assert redacted(text) == text


@given(st.lists(st.sampled_from([*ORDINARY, *(sample.made.text for sample in SAMPLES)]), max_size=12))
def test_lines_stay_lines_and_nothing_is_left_to_do(texts: list[str]) -> None:
    text = "\n".join(texts)
    once = redacted(text)
    assert once.count("\n") == text.count("\n")
    assert redacted(once) == once


@settings(max_examples=30)
@given(st.integers(0, 2 * OVERLAP), st.sampled_from(SAMPLES), st.sampled_from(["word ", "a line\n", "x"]))
def test_a_secret_at_the_end_of_a_piece_is_found(before: int, sample: Sample, unit: str) -> None:
    filler = unit * ((PIECE - before) // len(unit)) + "\n"
    assert not is_left_over(sample, redacted(f"{filler}{sample.made.text}\n\n{filler[:1_000]}"))


def test_a_key_larger_than_a_piece_is_hidden_whole() -> None:
    lines = [f"{number:06d}" + "aB3/" * 14 + "xY" for number in range(2 * PIECE // 64)]
    begin, end = "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "-----END PGP " + "PRIVATE KEY BLOCK-----"
    cleaned = redacted("\n".join(("before", begin, *lines, end, "after")))
    assert not [line for line in lines if line in cleaned]
    assert cleaned.startswith("before\n")
    assert cleaned.endswith("\nafter")


def test_colours_and_unseen_characters_hide_nothing_from_us() -> None:
    secret = "hunter2" + "two"
    for text in (f"password\x1b[0m=\x1b[1m{secret}\x1b[0m", f"pass\u200bword={secret}", f"pass\u200dword: {secret}"):
        assert secret not in redacted(text)
    assert redacted("\x1b[1mready\x1b[0m") == "\x1b[1mready\x1b[0m"


@given(st.text())
def test_redaction_takes_any_text(text: str) -> None:
    assert isinstance(redacted(text), str)
