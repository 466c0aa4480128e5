"""Secrets that are recognised by their context: key files, addresses, commands, headers, program settings."""

import json
from random import Random
from urllib.parse import quote

from everlong.lab.secrets.kind import ALNUM, BASE64, HEX, LOWER, UPPER, URLSAFE, Kind, Made, encoded, some

__all__ = ["FORMS", "password"]

WORDS = ("harbour", "Winter", "lantern", "Copper", "meadow", "orbit", "Saffron", "thunder", "pepper", "Granite")
SYMBOLS = "!#%*+-_.=?^~@"
IN_ADDRESS = "!*-_.~"  # symbols that need no escape in an address
USERS = ("admin", "app", "root", "deploy", "svc_billing", "anna")
HOSTS = ("db.internal", "10.0.4.17", "prod-db-1.example.org", "localhost")


def password(random: Random, symbols: str = SYMBOLS) -> str:
    """Return a password as people and generators choose them, with at least one digit or symbol."""
    style = random.random()
    if style < 0.3:
        return f"{random.choice(WORDS)}{random.randrange(10, 9_999)}{random.choice(symbols)}"
    if style < 0.4:
        return f"{random.choice(WORDS)}{random.choice('-_.')}{random.choice(WORDS)}{random.randrange(100)}"
    if style < 0.6:
        return some(random, ALNUM, random.randrange(9, 24)) + str(random.randrange(10))
    body = some(random, ALNUM + symbols, random.randrange(7, 22))
    return f"{some(random, ALNUM, 1)}{body}{random.choice(symbols)}{some(random, ALNUM, 1)}"


def _word(random: Random) -> str:
    """A password of letters only."""
    return (random.choice(WORDS) + random.choice(WORDS)).lower()


def _filled(random: Random, forms: tuple[str, ...], value: str) -> Made:
    """A form with user, host and the secret in it."""
    form = random.choice(forms)
    text = form.replace("USER", random.choice(USERS)).replace("HOST", random.choice(HOSTS)).replace("SECRET", value)
    return Made(text, (value,))


def _armoured(random: Random, label: str, columns: int, lines: int, head: str = "") -> Made:
    """A key between its two marker lines. Only what is in between must be removed."""
    body = [some(random, BASE64, columns) for _ in range(lines)] + [some(random, BASE64, random.randrange(8, 40)) + "="]
    text = "\n".join((f"-----BEGIN {label}-----", *([head, ""] if head else []), *body, f"-----END {label}-----"))
    return Made(text, tuple(body))


def _pem(random: Random) -> Made:
    label = random.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"))
    head = "Proc-Type: 4,ENCRYPTED" if label.startswith("RSA") and random.random() < 0.3 else ""
    return _armoured(random, label, 64, random.randrange(2, 26), head)


def _ppk(random: Random) -> Made:
    public, private = ([some(random, BASE64, 64) for _ in range(n)] for n in (3, random.randrange(1, 14)))
    head = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: imported"
    mac = some(random, HEX, 64)
    text = "\n".join(
        (head, "Public-Lines: 3", *public, f"Private-Lines: {len(private)}", *private, f"Private-MAC: {mac}")
    )
    return Made(text, tuple(private))


def _service_account(random: Random) -> Made:
    key = _armoured(random, "PRIVATE KEY", 64, 25)
    fields = {"type": "service_account", "project_id": "acme-prod", "private_key": key.text + "\n"}
    return Made(json.dumps(fields | {"client_email": "app@acme-prod.iam.gserviceaccount.com"}, indent=2), key.hidden)


def _database_url(random: Random) -> Made:
    scheme = random.choice(
        ("postgres", "postgresql+psycopg", "mysql", "mongodb+srv", "redis", "amqp", "mssql", "clickhouse")
    )
    value = password(random, IN_ADDRESS) if random.random() < 0.7 else quote(password(random), safe="")
    user = "" if scheme == "redis" and random.random() < 0.5 else random.choice(USERS)
    return Made(f"{scheme}://{user}:{value}@{random.choice(HOSTS)}:5432/app?sslmode=require", (value,))


MYSQL = (
    "mysql -u USER -pSECRET -h HOST app",
    "mysqldump -uUSER -pSECRET app > dump.sql",
    "mariadb -h HOST -u USER -p'SECRET' -e 'select 1'",
    'docker exec db mysqladmin -u USER -p"SECRET" ping',
)
FLAGS = (
    "sshpass -p SECRET ssh USER@HOST",
    "sshpass -p 'SECRET' scp a.txt USER@HOST:/tmp",
    "docker login -u USER -p SECRET registry.example.org",
    "redis-cli -h HOST -a SECRET ping",
    "ldapsearch -x -D cn=USER -w SECRET -H ldap://HOST",
    "psql --password=SECRET -h HOST",
    "keytool -list -keystore a.jks -storepass SECRET",
    "vault login -method=userpass username=USER password=SECRET",
    "openssl rsa -in a.pem -passin pass:SECRET",
    "7z x backup.7z -pSECRET",
    "helm install app ./chart --set db.password=SECRET",
    "az login --service-principal -u USER -p SECRET",
)
CURL = (
    "curl -u USER:SECRET https://example.org/api",
    "curl -sS --user 'USER:SECRET' https://HOST/",
    'curl -uUSER:SECRET "https://example.org/v1"',
    "wget --user=USER --password=SECRET https://example.org/a.zip",
    "http -a USER:SECRET example.org/me",
)
BEARER = (
    'curl -H "Authorization: Bearer SECRET" https://api.example.org',
    '{"headers": {"Authorization": "Bearer SECRET"}}',
    "authorization: token SECRET",
    "req.Header.Set('Authorization', 'Bearer SECRET')",
    "> Authorization: Bearer SECRET\n> Accept: */*",
    "Proxy-Authorization: Bearer SECRET",
)
BASIC = (
    "Authorization: Basic SECRET",
    "headers = {'Authorization': 'Basic SECRET'}",
    '-H "authorization: basic SECRET"',
    "proxy-authorization: Basic SECRET",
)
XML = (
    "<password>SECRET</password>",
    "<server><id>nexus</id><username>USER</username><password>SECRET</password></server>",
    '<add key="DbPassword" value="SECRET" />',
    '<property name="hibernate.connection.password">SECRET</property>',
    '<Password xsi:type="xsd:string">SECRET</Password>',
    '<input type="password" name="password" value="SECRET">',
)
LABELS = (
    "Passwort: SECRET",
    "Das Passwort lautet SECRET",
    "Kennwort = SECRET",
    "密码：SECRET",
    "数据库口令是 SECRET",
    "密碼: SECRET",
    "Mot de passe : SECRET",
    "le mot de passe est SECRET",
    "Contraseña: SECRET",
    "la contraseña es SECRET",
    "Пароль: SECRET",
    "пароль - SECRET",
    "Senha: SECRET",
    "パスワード：SECRET",
    "パスワードは SECRET です",
    "비밀번호: SECRET",
    "Hasło: SECRET",
    "Wachtwoord: SECRET",
    "Lösenord: SECRET",
    "Parola: SECRET",
    "كلمة المرور: SECRET",
    "पासवर्ड: SECRET",
)
SQL = (
    "CREATE USER USER IDENTIFIED BY 'SECRET';",
    "ALTER USER USER WITH PASSWORD 'SECRET';",
    "CREATE ROLE USER LOGIN ENCRYPTED PASSWORD 'SECRET';",
    "GRANT ALL ON app.* TO 'USER'@'%' IDENTIFIED BY 'SECRET';",
    "SET PASSWORD FOR 'USER'@'localhost' = PASSWORD('SECRET');",
)
NETRC = (
    "machine HOST login USER password SECRET",
    "machine HOST\n  login USER\n  password SECRET",
    "default login USER password SECRET",
)
CONNECTION = (
    "Server=HOST,1433;Database=app;User Id=USER;Password=SECRET;Encrypt=True",
    "Data Source=HOST;Initial Catalog=app;UID=USER;PWD=SECRET;",
    "host=HOST port=5432 dbname=app user=USER password=SECRET",
    "jdbc:postgresql://HOST:5432/app?user=USER&password=SECRET&ssl=true",
    "jdbc:oracle:thin:USER/SECRET@HOST:1521/app",
)
COOKIES = (
    "Set-Cookie: sessionid=SECRET; Path=/; HttpOnly",
    "Cookie: theme=dark; JSESSIONID=SECRET",
    "curl -b 'session=SECRET' https://example.org",
    "curl --cookie connect.sid=SECRET https://example.org",
    "document.cookie = 'auth_session=SECRET; path=/'",
    "PHPSESSID=SECRET",
)
QUERIES = (
    "GET /v1/items?access_token=SECRET&page=2 HTTP/1.1",
    "https://example.org/api?api_key=SECRET",
    "https://maps.example.org/js?v=3&key=SECRET&callback=init",
    "wss://example.org/socket?token=SECRET",
    "https://example.org/reset?code=SECRET#top",
)
NPMRC = (
    "//registry.npmjs.org/:_authToken=SECRET",
    "//npm.example.org/:_password=SECRET",
    "npm config set //registry.example.org/:_authToken SECRET",
    "_auth = SECRET",
)
WIFI = (
    'network={\n  ssid="office"\n  psk="SECRET"\n}',
    "WIFI:S:office;T:WPA;P:SECRET;;",
    "nmcli dev wifi connect office password SECRET",
    "wpa_passphrase=SECRET",
)


def _pgpass(random: Random) -> Made:
    value = some(random, ALNUM, random.randrange(8, 20)) + "7"
    return Made(f"{random.choice(HOSTS)}:5432:{random.choice(('app', '*'))}:{random.choice(USERS)}:{value}", (value,))


def _hashed(random: Random) -> Made:
    salted = ALNUM + "./"
    value = random.choice(
        (
            f"$apr1${some(random, salted, 8)}${some(random, salted, 22)}",
            f"$2y$10${some(random, salted, 53)}",
            f"$6${some(random, salted, 16)}${some(random, salted, 86)}",
            f"{{SHA}}{some(random, BASE64, 27)}=",
            f"$argon2id$v=19$m=65536,t=3,p=4${some(random, BASE64, 22)}${some(random, BASE64, 43)}",
            f"pbkdf2_sha256$600000${some(random, ALNUM, 22)}${some(random, BASE64, 43)}=",
        )
    )
    return Made(f"{random.choice(USERS)}:{value}", (value.rpartition("$")[2].removeprefix("{SHA}"),))


def _kubernetes(random: Random) -> Made:
    value, other = encoded(password(random)), encoded(some(random, ALNUM, 32))
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n"
        f"  username: YWRtaW4=\n  password: {value}\n  signing.dat: {other}\n"
    )
    return Made(text, (value, other))


def _docker_config(random: Random) -> Made:
    value = encoded(f"{random.choice(USERS)}:{password(random)}")
    return Made(json.dumps({"auths": {"https://index.docker.io/v1/": {"auth": value}}}), (value,))


def _sas(random: Random) -> Made:
    value = quote(some(random, BASE64, 43) + "=", safe="")
    head = "https://acme.blob.core.windows.net/box/a.txt?sv=2022-11-02&st=2024-05-01T10%3A00%3A00Z&sr=b&sp=r"
    return Made(f"{head}&sig={value}", (value,))


def _azure_connection(random: Random) -> Made:
    value = some(random, BASE64, 86) + "=="
    head, tail = "DefaultEndpointsProtocol=https;AccountName=acme", "EndpointSuffix=core.windows.net"
    if random.random() < 0.5:
        return Made(f"{head};AccountKey={value};{tail}", (value,))
    value = some(random, BASE64, 43) + "="
    bus = "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root"
    return Made(f"{bus};SharedAccessKey={value}", (value,))


def _slack_webhook(random: Random) -> Made:
    value = some(random, ALNUM, 24)
    ids = f"T{some(random, UPPER + HEX[:10], 10)}/B{some(random, UPPER + HEX[:10], 10)}"
    return Made(f"https://hooks.slack.com/services/{ids}/{value}", (value,))


def _discord_webhook(random: Random) -> Made:
    value = some(random, URLSAFE, 68)
    return Made(f"https://discord.com/api/webhooks/{random.randrange(10**17, 10**18)}/{value}", (value,))


def _sentry_dsn(random: Random) -> Made:
    value = some(random, HEX, 32)
    return Made(f"https://{value}@o{random.randrange(10**6)}.ingest.sentry.io/{random.randrange(10**6)}", (value,))


def _otpauth(random: Random) -> Made:
    value = some(random, UPPER + "234567", 32)
    return Made(f"otpauth://totp/Acme:anna@example.org?secret={value}&issuer=Acme", (value,))


def _assigned(random: Random) -> Made:
    value = _word(random) if random.random() < 0.3 else password(random)
    forms = (
        "DB_PASS=SECRET",
        "export PGPASSWORD=SECRET",
        'MYSQL_ROOT_PASSWORD="SECRET"',
        "REDIS_PASS='SECRET' ./run.sh",
        '{"user": "USER", "password": "SECRET"}',
        '{"user": "USER", "pass": "SECRET"}',
        "  SMTP_PASS: 'SECRET'",
        'connect(user="USER", passwd="SECRET")',
        'db_pw = "SECRET"',
        '"passphrase": "SECRET"',
    )
    return _filled(random, forms, value)


PASSWORD_NAMES = ("db pass", "db password", "passwd", "root password", "admin pwd", "smtp pass", "login password")

FORMS: tuple[Kind, ...] = (
    Kind("pem", _pem, "snippet"),
    Kind("openssh", lambda r: _armoured(r, "OPENSSH PRIVATE KEY", 70, r.randrange(4, 38)), "snippet"),
    Kind("pgp", lambda r: _armoured(r, "PGP PRIVATE KEY BLOCK", 64, 30, "Version: 1"), "snippet"),
    Kind("putty", _ppk, "snippet"),
    Kind("google-service-account", _service_account, "snippet"),
    Kind("database-url", _database_url, "snippet"),
    Kind("password", password, "value", PASSWORD_NAMES),
    Kind("password-assigned", _assigned, "snippet"),
    Kind("password-in-language", lambda r: _filled(r, LABELS, password(r)), "snippet"),
    Kind("mysql-flag", lambda r: _filled(r, MYSQL, password(r, "!+-_.=^~@")), "snippet"),
    Kind("password-flag", lambda r: _filled(r, FLAGS, password(r, "!+-_.^~@")), "snippet"),
    Kind("curl-user", lambda r: _filled(r, CURL, password(r, "!+-_.^~")), "snippet"),
    Kind("bearer", lambda r: _filled(r, BEARER, some(r, URLSAFE, r.randrange(24, 64)) + "4"), "snippet"),
    Kind("basic", lambda r: _filled(r, BASIC, encoded(f"{r.choice(USERS)}:{password(r)}")), "snippet"),
    Kind("password-in-xml", lambda r: _filled(r, XML, _word(r) if r.random() < 0.3 else password(r)), "snippet"),
    Kind("password-in-sql", lambda r: _filled(r, SQL, password(r)), "snippet"),
    Kind("connection-string", lambda r: _filled(r, CONNECTION, password(r, "!-_.~")), "snippet"),
    Kind("netrc", lambda r: _filled(r, NETRC, password(r)), "snippet"),
    Kind("pgpass", _pgpass, "snippet"),
    Kind("password-hash", _hashed, "snippet"),
    Kind("kubernetes-secret", _kubernetes, "snippet"),
    Kind("docker-config", _docker_config, "snippet"),
    Kind("azure-sas", _sas, "snippet"),
    Kind("azure-connection", _azure_connection, "snippet"),
    Kind("slack-webhook", _slack_webhook, "snippet"),
    Kind("discord-webhook", _discord_webhook, "snippet"),
    Kind("sentry-dsn", _sentry_dsn, "snippet"),
    Kind("cookie", lambda r: _filled(r, COOKIES, some(r, URLSAFE, r.randrange(26, 50)) + "7"), "snippet"),
    Kind("query", lambda r: _filled(r, QUERIES, some(r, ALNUM, r.randrange(20, 44)) + "3"), "snippet"),
    Kind("npmrc", lambda r: _filled(r, NPMRC, encoded(f"{r.choice(USERS)}:{some(r, LOWER + HEX, 20)}7")), "snippet"),
    Kind("totp", _otpauth, "snippet"),
    Kind("wifi", lambda r: _filled(r, WIFI, password(r, "!-_.~")), "snippet"),
)
