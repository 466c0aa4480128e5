"""Secrets of vendors in their published formats: prefix, alphabet, length and checksum; the rest is random."""

from random import Random

from everlong.lab.secrets.kind import ALNUM, BASE64, HEX, LOWER, UPPER, URLSAFE, Kind, Made, encoded, some, with_crc

__all__ = ["VENDORS"]

BASE32 = UPPER + "234567"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"


def _one(random: Random, *choices: str) -> str:
    return random.choice(choices)


def _jwt(random: Random) -> str:
    head = encoded('{"alg":"HS256","typ":"JWT"}', padded=False)
    body = encoded(f'{{"sub":"{random.randrange(10**9)}","iat":{random.randrange(10**9)}}}', padded=False)
    return f"{head}.{body}.{some(random, URLSAFE, 43)}"


def _openai(random: Random) -> str:
    if random.random() < 0.3:
        return f"sk-{some(random, ALNUM, 20)}T3BlbkFJ{some(random, ALNUM, 20)}"
    kind = _one(random, "proj", "svcacct", "admin")
    return f"sk-{kind}-{some(random, URLSAFE, 74)}T3BlbkFJ{some(random, URLSAFE, 74)}"


def _discord(random: Random) -> str:
    user = encoded(str(random.randrange(10**17, 10**18)), padded=False)
    return f"{user}.{some(random, URLSAFE, 6)}.{some(random, URLSAFE, 38)}"


def _sentry(random: Random) -> str:
    if random.random() < 0.5:
        return f"sntryu_{some(random, HEX, 64)}"
    about = encoded(f'{{"iat":{random.randrange(10**9)}.1,"url":"https://sentry.io","org":"acme"}}')
    return f"sntrys_{about}_{some(random, BASE64, 43)}"


def _grafana(random: Random) -> str:
    if random.random() < 0.5:
        return f"glsa_{some(random, ALNUM, 32)}_{some(random, HEX, 8)}"
    return "glc_" + encoded(f'{{"o":"{random.randrange(10**6)}","n":"acme","k":"{some(random, ALNUM, 24)}"}}')


def _vault(random: Random) -> str:
    return _one(random, "hvs.", "hvb.") + "CAESI" + some(random, URLSAFE, random.randrange(85, 95))


def _square(random: Random) -> str:
    if random.random() < 0.5:
        return f"EAAA{some(random, URLSAFE, 60)}"
    return _one(random, f"sq0atp-{some(random, URLSAFE, 22)}", f"sq0csp-{some(random, URLSAFE, 43)}")


def _stripe(random: Random) -> str:
    if random.random() < 0.25:
        return f"whsec_{some(random, ALNUM, 32)}"
    return f"{_one(random, 'sk', 'rk')}_{_one(random, 'live', 'test')}_{some(random, ALNUM, random.choice((24, 99)))}"


def _slack(random: Random) -> str:
    numbers = f"{random.randrange(10**11, 10**12)}-{random.randrange(10**12, 10**13)}"
    if random.random() < 0.3:
        return f"xapp-1-A{some(random, UPPER, 10)}-{random.randrange(10**12, 10**13)}-{some(random, HEX, 64)}"
    return f"{_one(random, 'xoxb', 'xoxp')}-{numbers}-{some(random, ALNUM, 24)}"


def _atlassian(random: Random) -> str:
    return f"ATATT3xFfGF0{some(random, URLSAFE, 171)}={some(random, HEX, 8).upper()}"


def _braintree(random: Random) -> Made:
    user, value = some(random, HEX[:10] + LOWER, 16), some(random, HEX, 32)
    return Made(f"access_token$production${user}${value}", (user, value))  # the rest is not secret, and part of a name


VENDORS: tuple[Kind, ...] = (
    # --- clouds
    Kind("aws-key-id", lambda r: _one(r, "AKIA", "ASIA") + some(r, BASE32, 16), names=("aws access key id",)),
    Kind("aws-secret-key", lambda r: some(r, BASE64, 40), names=("aws secret access key", "aws secret")),
    Kind("google-api-key", lambda r: f"AIza{some(r, URLSAFE, 35)}", names=("google api key", "gemini api key")),
    Kind("google-oauth-secret", lambda r: f"GOCSPX-{some(r, URLSAFE, 28)}", names=("client secret",)),
    Kind("azure-storage-key", lambda r: f"{some(r, BASE64, 86)}==", names=("account key", "azure storage key")),
    Kind(
        "azure-client-secret",
        lambda r: f"{some(r, ALNUM, 3)}{_one(r, '7', '8')}Q~{some(r, ALNUM + '_~.-', 33)}{some(r, ALNUM, 1)}",
        names=("azure client secret",),
    ),
    Kind("digitalocean", lambda r: f"{_one(r, 'dop', 'doo')}_v1_{some(r, HEX, 64)}", names=("do token",)),
    Kind("cloudflare", lambda r: some(r, URLSAFE, 40), "value", ("cloudflare api token", "cf api key")),
    Kind("alibaba", lambda r: f"LTAI5t{some(r, ALNUM, 18)}", names=("access key id",)),
    Kind("heroku", lambda r: f"HRKU-AA{some(r, URLSAFE, 58)}", names=("heroku api key",)),
    Kind("fly", lambda r: f"fo1_{some(r, URLSAFE, 43)}", names=("fly access token",)),
    # --- code
    Kind("github", lambda r: with_crc(_one(r, "ghp_", "gho_", "ghu_", "ghs_"), some(r, ALNUM, 30))),
    Kind("github-fine-grained", lambda r: f"github_pat_{some(r, ALNUM, 22)}_{some(r, ALNUM, 59)}"),
    Kind("gitlab", lambda r: _one(r, "glpat-", "gldt-", "glrt-") + some(r, URLSAFE, 20), names=("gitlab token",)),
    Kind("npm", lambda r: with_crc("npm_", some(r, ALNUM, 30)), names=("npm token",)),
    Kind("pypi", lambda r: f"pypi-AgEIcHlwaS5vcmc{some(r, URLSAFE, r.randrange(120, 160))}", names=("twine password",)),
    Kind("docker", lambda r: f"dckr_pat_{some(r, URLSAFE, 27)}", names=("docker token",)),
    Kind("atlassian", _atlassian, names=("jira api token",)),
    Kind(
        "bitbucket", lambda r: f"ATBB{some(r, ALNUM, 24)}{some(r, HEX, 8).upper()}", names=("bitbucket app password",)
    ),
    Kind("rubygems", lambda r: f"rubygems_{some(r, HEX, 48)}", names=("gem host api key",)),
    Kind("crates-io", lambda r: f"cio{some(r, ALNUM, 32)}", names=("cargo registry token",)),
    # --- messages
    Kind("slack", _slack, names=("slack token", "slack bot token")),
    Kind("discord-bot", _discord, names=("discord token",)),
    Kind("telegram-bot", lambda r: f"{r.randrange(10**9, 10**10)}:AA{some(r, URLSAFE, 33)}", names=("bot token",)),
    Kind("twilio-auth-token", lambda r: some(r, HEX, 32), "value", ("twilio auth token",)),
    Kind("sendgrid", lambda r: f"SG.{some(r, URLSAFE, 22)}.{some(r, URLSAFE, 43)}", names=("sendgrid api key",)),
    Kind("mailgun", lambda r: f"key-{some(r, HEX, 32)}", names=("mailgun api key",)),
    Kind("mailchimp", lambda r: f"{some(r, HEX, 32)}-us{r.randrange(1, 22)}", names=("mailchimp api key",)),
    # --- money
    Kind("stripe", _stripe, names=("stripe secret key",)),
    Kind("square", _square, names=("square access token",)),
    Kind("shopify", lambda r: f"{_one(r, 'shpat', 'shpss', 'shpca')}_{some(r, HEX, 32)}", names=("shopify token",)),
    Kind(
        "braintree",
        _braintree,
        names=("braintree access token",),
    ),
    # --- models
    Kind("openai", _openai, names=("openai api key",)),
    Kind("anthropic", lambda r: f"sk-ant-api03-{some(r, URLSAFE, 93)}AA", names=("anthropic api key",)),
    Kind("hugging-face", lambda r: f"hf_{some(r, UPPER + LOWER, 34)}", names=("hf token",)),
    Kind("groq", lambda r: f"gsk_{some(r, ALNUM, 52)}", names=("groq api key",)),
    Kind("replicate", lambda r: f"r8_{some(r, ALNUM, 37)}", names=("replicate api token",)),
    Kind("xai", lambda r: f"xai-{some(r, ALNUM, 80)}", names=("xai api key",)),
    Kind("perplexity", lambda r: f"pplx-{some(r, ALNUM, 48)}", names=("perplexity api key",)),
    Kind("nvidia", lambda r: f"nvapi-{some(r, URLSAFE, 64)}", names=("nvidia api key",)),
    Kind("cohere", lambda r: some(r, ALNUM, 40), "value", ("cohere api key",)),
    # --- infrastructure
    Kind("vault", _vault, names=("vault token",)),
    Kind("terraform", lambda r: f"{some(r, ALNUM, 14)}.atlasv1.{some(r, ALNUM, 67)}", names=("tfe token",)),
    Kind("databricks", lambda r: f"dapi{some(r, HEX, 32)}-{r.randrange(2, 4)}", names=("databricks token",)),
    Kind("datadog", lambda r: some(r, HEX, r.choice((32, 40))), "value", ("dd api key", "datadog app key")),
    Kind("new-relic", lambda r: f"NRAK-{some(r, UPPER + HEX[:10], 27)}", names=("new relic api key",)),
    Kind("sentry", _sentry, names=("sentry auth token",)),
    Kind("grafana", _grafana, names=("grafana token",)),
    Kind("okta", lambda r: f"00{some(r, URLSAFE, 40)}", "value", ("okta api token",)),
    Kind("linear", lambda r: f"lin_api_{some(r, ALNUM, 40)}", names=("linear api key",)),
    Kind("notion", lambda r: _one(r, f"ntn_{some(r, ALNUM, 46)}", f"secret_{some(r, ALNUM, 43)}")),
    Kind("airtable", lambda r: f"pat{some(r, ALNUM, 14)}.{some(r, HEX, 64)}", names=("airtable token",)),
    Kind("figma", lambda r: f"figd_{some(r, URLSAFE, 40)}", names=("figma token",)),
    Kind("postman", lambda r: f"PMAK-{some(r, HEX, 24)}-{some(r, HEX, 34)}", names=("postman api key",)),
    Kind("pulumi", lambda r: f"pul-{some(r, HEX, 40)}", names=("pulumi access token",)),
    Kind("doppler", lambda r: f"dp.{_one(r, 'pt', 'st', 'ct')}.{some(r, ALNUM, 43)}", names=("doppler token",)),
    Kind("supabase", lambda r: f"sbp_{some(r, HEX, 40)}", names=("supabase access token",)),
    Kind("planetscale", lambda r: f"pscale_tkn_{some(r, URLSAFE, 43)}", names=("planetscale token",)),
    Kind("age", lambda r: f"AGE-SECRET-KEY-1{some(r, BECH32, 58)}", names=("age key",)),
    Kind("jwt", _jwt, names=("access token", "id token", "session")),
)
