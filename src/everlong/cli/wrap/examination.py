"""What `everlong doctor` checks: what is installed, the user's login, where requests go, and what is missing.

Nothing beyond this machine is contacted unless the user wants it. A key is named by its variable and never shown.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from everlong.cli.terminal.tables import amount
from everlong.cli.words.wording import Words
from everlong.cli.wrap.client import Client, Situation
from everlong.cli.wrap.gateway import Wanted, health_of, look_for, reaches, with_own_config
from everlong.cli.wrap.run import SERVED, wanted_for
from everlong.errors import InputError
from everlong.extras import command_for, lacking
from everlong.gateway import is_loopback
from everlong.llm import KNOWN, cache_folder, registry_now
from everlong.windows import window

__all__ = ["Examination", "Finding", "examine", "version_of"]

PATIENCE = 30  # seconds for a client to say its version


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what it is about, its result, and what to do if something is wrong."""

    what: str
    said: str
    remedy: str = ""


@dataclass(slots=True, kw_only=True)
class Examination:
    """All findings for a client. `figures` has the same for programs."""

    client: str
    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """What to do before the client can be started behind the gateway."""
        return [finding.remedy for finding in self.findings if finding.remedy]

    def as_json(self) -> dict[str, Any]:
        """Return the examination for programs."""
        findings = [asdict(finding) for finding in self.findings]
        return {"client": self.client, **self.figures, "findings": findings, "missing": self.missing}


def version_of(program: str, client: Client) -> str:
    """Return the version that a program reports; "" if it reports none."""
    try:
        done = subprocess.run(
            [program, *client.version],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    return lines[-1][:60] if lines and not done.returncode else ""


def examine(client: Client, given: Situation, said: Wanted, say: Words, *, online: bool) -> Examination:
    """Check everything that a run of the client needs."""
    found = Examination(client=client.name)
    _look_at_program(found, client, given, say)
    _look_at_key(found, client, given, say)
    wanted = _look_at_gateway(found, wanted_for(client, given, said), given.environment, say)
    named = [KNOWN[wanted.upstream][0] if wanted.upstream in KNOWN else wanted.upstream] if wanted.upstream else []
    own = named or [server.url for server in client.servers(given)]
    if online and not own:
        tables = [table for table in wanted.upstreams if set(table.get("formats", ())) & set(client.apis)]
        own = [str(table["url"]) for table in tables]
    _look_at_upstreams(found, own, say, online=online)
    _look_at_window(found, client, given, say)
    launch = client.prepare(given)
    if launch.refused:
        found.findings.append(Finding(what=say("doctor_managed"), said=launch.refused, remedy=launch.refused))
    else:
        apis = [name for name in client.apis if name in SERVED]
        found.figures["managed"] = apis
        text = say("semicolon").join([say("list_comma").join(apis), *([say("managed_compaction")] * client.compacts)])
        found.findings.append(Finding(what=say("doctor_managed"), said=text))
    return found


def _look_at_program(found: Examination, client: Client, given: Situation, say: Words) -> None:
    path = client.found(given.environment.get("PATH"))
    version = version_of(path, client) if path else ""
    found.figures |= {"path": path, "version": version}
    if path:
        text = f"{client.title} {version} ({path})"
        found.findings.append(Finding(what=say("doctor_client"), said=text))
        return
    text = say("not_installed", title=client.title, program=client.program, install=client.install)
    found.findings.append(Finding(what=say("doctor_client"), said=text, remedy=client.install))


def _look_at_key(found: Examination, client: Client, given: Situation, say: Words) -> None:
    login = client.signed_in(given)
    found.figures["login"] = {"kind": login.kind, "name": login.name}
    remedy = ""
    if login.kind == "elsewhere":
        text, remedy = say("key_elsewhere", name=login.name), login.remedy
    elif login.kind == "token":
        text = say("key_login", name=login.name)
    elif login.kind == "key":
        known = login.name in given.environment
        text = say("key_variable" if known else "key_stored", name=login.name)
    else:
        text = say("key_none")
        if not given.upstream and client.keys:
            remedy = say("key_remedy", names=client.keys[0])
    found.findings.append(Finding(what=say("doctor_key"), said=text, remedy=remedy))


def _look_at_gateway(found: Examination, wanted: Wanted, environment: Mapping[str, str], say: Words) -> Wanted:
    address, text, remedy = "", say("gateway_starts"), ""
    try:
        environment = with_own_config(environment)
        wanted = wanted.check(environment)
        running = look_for(wanted, environment)
        if running is not None:
            address = running.address
            text = say("gateway_runs", address=address, version=health_of(address))
    except InputError as error:
        text = remedy = str(error)
    if lacking("server") and not address:
        text = remedy = say("gateway_packages", command=command_for("server"))
    found.figures["gateway"] = address
    found.findings.append(Finding(what=say("doctor_gateway"), said=text, remedy=remedy))
    return wanted


def _look_at_upstreams(found: Examination, servers: Sequence[str], say: Words, *, online: bool) -> None:
    """Check the servers that the user has named; without `online`, only those on this machine."""
    upstreams: list[dict[str, Any]] = []
    for where in dict.fromkeys(servers):
        if not online and not is_loopback(urlsplit(where).hostname or ""):
            upstreams.append({"url": where, "answers": None})
            found.findings.append(Finding(what=say("doctor_upstream"), said=say("upstream_unasked", where=where)))
            continue
        answers = reaches(where)
        upstreams.append({"url": where, "answers": answers})
        text = say("upstream_reached" if answers else "upstream_silent", where=where)
        remedy = "" if answers else say("upstream_remedy", where=where)
        found.findings.append(Finding(what=say("doctor_upstream"), said=text, remedy=remedy))
    if not upstreams:
        found.findings.append(Finding(what=say("doctor_upstream"), said=say("upstream_own")))
    found.figures["upstreams"] = upstreams


def _look_at_window(found: Examination, client: Client, given: Situation, say: Words) -> None:
    model = client.model(given)
    if given.window is not None:
        text = say("window_of", n=amount(given.window), model=model or "–", source=say("source_user"))
        found.figures["window"] = {"tokens": given.window, "source": "user", "model": model}
    elif model:
        known = window(model, registry=registry_now(cache_folder(given.environment)))
        source = say(f"source_{known.source}", date=known.date)
        text = say("window_of", n=amount(known.context), model=model, source=source)
        found.figures["window"] = {"tokens": known.context, "source": known.source, "model": model}
    else:
        text = say("window_unknown")
        found.figures["window"] = None
    found.findings.append(Finding(what=say("doctor_window"), said=text))


def with_arguments(given: Situation, model: str) -> Situation:
    """Return the situation of a run with this model."""
    return replace(given, arguments=("--model", model)) if model else given
