"""Ordinary lines that look like secrets but are not: hashes, ids, lock files, pictures, code about passwords."""

from collections.abc import Callable, Iterator
from random import Random
from uuid import UUID

from everlong.lab.secrets.kind import ALNUM, BASE64, HEX, URLSAFE, some

__all__ = ["ordinary_lines"]

PACKAGES = ("left-pad", "react-dom", "@types/node", "serde_json", "golang.org/x/net", "urllib3")

#: What is drawn: "H40" is 40 hex digits, "B86" 86 base64 characters, "U" a UUID, "P" a package, "N" a number.
FORMS: tuple[str, ...] = (
    "commit {H40}",
    "index {H7}..{H7} 100644",
    "Merge: {H9} {H9}",
    "{H8} Fix the login page when the token is missing",
    "sha256:{H64}",
    '    "integrity": "sha512-{B86}==",',
    "    integrity sha1-{B27}=",
    "  resolution: {{integrity: sha512-{B86}==}}",
    '    "resolved": "https://registry.npmjs.org/{P}/-/a-1.2.{N}.tgz#{H40}",',
    'checksum = "{H64}"',
    "{P} v0.17.{N} h1:{B43}=",
    "{P} v0.17.{N}/go.mod h1:{B43}=",
    "    --hash=sha256:{H64} \\",
    '{{ url = "https://files.example.org/{H2}/{H2}/{H60}/a.whl", hash = "sha256:{H64}", size = {N} }},',
    "id: {U}",
    'request_id="{U}" status=200',
    "2024-05-01 12:00:00 DEBUG [{H16}-{H8}] handled in {N} ms",
    "traceparent: 00-{H32}-{H16}-01",
    '<img src="data:image/png;base64,{B300}">',
    "![chart](data:image/png;base64,{B200}==)",
    '"tool_use_id": "toolu_01{A22}"',
    '{{"id": "call_{A24}", "type": "function"}}',
    '"id": "chatcmpl-{A29}", "object": "chat.completion"',
    '"id": "msg_01{A22}", "session_id": "{U}"',
    "gid://shopify/Order/{N}",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{B43} dev@example.org",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{B360}= dev@example.org",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "SHA256:{B43} dev@example.org (ED25519)",
    'ETag: "{H32}"',
    "docker pull registry.example.org/app@sha256:{H64}",
    "build/assets/index-{A8}.js  {N} kB",
    "from {P} import token_count  # {N}",
    "max_tokens={N}, temperature=0.2",
    '"usage": {{"prompt_tokens": {N}, "completion_tokens": {N}}}',
    "password: must contain {N} characters",
    "The token is refreshed every {N} minutes.",
    "if token == expected_token and attempts < {N}:",
    "def login(user: str, password: str) -> Token:",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "const apiKey = process.env.API_KEY ?? config.apiKey;",
    "password = getpass.getpass()",
    "self.password_hash = hash_password(password)",
    "token: ${{{{ secrets.GITHUB_TOKEN }}}}",
    "OPENAI_API_KEY=<your key>",
    'api_key="YOUR_API_KEY"',
    "cache_key = f'user:{{user_id}}:{N}'",
    "PRIMARY KEY (id), FOREIGN KEY (user_id) REFERENCES users(id)",
    'key="user-{N}" value="12"',
    '    <Row key={{item.id}} name="row-{N}" />',
    "mkdir -p /tmp/build-{N} && cp -p a.txt b.txt",
    "grep -rn -u admin src/ | head -{N}",
    "ssh -p 2222 dev@example.org",
    "docker run -p 8080:80 -u 1000:1000 app:{H12}",
    "pytest -p no:cacheprovider tests/test_{N}.py",
    "https://example.org/wiki/Some_Long_Article_Name_{N}?page=2&sort=up",
    "https://github.com/acme/app/blob/{H40}/src/main.py#L{N}",
    "arn:aws:s3:::acme-logs-{N}/AWSLogs/",
    "kubectl get pods app-{H10}-x7k2p",
    "thisIsAVeryLongCamelCaseIdentifierNameForATest{N}",
    "test_that_a_very_long_name_in_snake_case_is_left_alone_{N}",
    "com.example.product.module.VeryLongClassName$Inner{N}",
    "密码错误，请重新输入（还剩 {N} 次）",
    "请输入密码：",
    "Bitte geben Sie Ihr Passwort ein.",
    "Le mot de passe est obligatoire.",
    "Введите пароль:",
    "He pasted the secret recipe: two eggs, {N} g of flour.",
    "The key is to start early; the secret is patience.",
    "Basic authentication is off, bearer tokens are on.",
    "Cookie: a small file that a site leaves behind",
    "pass: {N} tests, fail: 0",
    "PASS tests/unit/login.test.ts ({N} ms)",
    "pass 2 of {N}: optimise",
    "passed={N} failed=0",
    "key: value",
    "primary_key: id",
    "public_key: {B43}=",
    "sort key = name, partition key = user_{N}",
    "0x{H40}",
    "0x{H64}",
    "deps: {P}@^1.2.{N}",
    'etag = W/"{H2}-{B27}"',
    "X-Request-Id: {H32}",
    "  {N}→    return token",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
    "{N} {N} {N} {N}",
)
ALPHABETS = {"H": HEX, "B": BASE64, "A": ALNUM, "W": URLSAFE}


def ordinary_lines(seed: int, times: int) -> Iterator[str]:
    """Yield every form this many times, drawn again each time."""
    random = Random(seed)
    for _ in range(times):
        for form in FORMS:
            yield _drawn(random, form)


def _drawn(random: Random, form: str) -> str:
    class Draw(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return _piece(random, key)

    return form.format_map(Draw())


def _piece(random: Random, mark: str) -> str:
    plain: dict[str, Callable[[], str]] = {
        "U": lambda: str(UUID(int=random.getrandbits(128), version=4)),
        "P": lambda: random.choice(PACKAGES),
        "N": lambda: str(random.randrange(1, 5_000)),
    }
    draw = plain.get(mark)
    return draw() if draw is not None else some(random, ALPHABETS[mark[0]], int(mark[1:]))
