"""Who stands between client and upstream: one row each, with the command line that its documentation shows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from everlong.lab.environments import ENVIRONMENTS, HERE, SERVER, Environment
from everlong.lab.speed.gateways.bodies import ANTHROPIC, MODEL, OPENAI

__all__ = ["DIRECT", "EVERLONG", "HOP", "PARTIES", "Party"]


@dataclass(frozen=True, slots=True)
class Party:
    """A gateway: where it is installed, the program there and its arguments, the files it wants.

    In arguments and files `{port}`, `{upstream}` and `{folder}` stand for where it listens, where the upstream does,
    and where its files lie.
    """

    title: str
    environment: Environment
    program: str = "python"
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    fmt: str = OPENAI

    def command(self, python: Path, places: Mapping[str, object]) -> list[str]:
        """What to start, given the interpreter of its environment."""
        program = python if self.program == "python" else python.parent / self.program
        return [str(program), *(_filled(argument, places) for argument in self.arguments)]

    def write_files(self, folder: Path, places: Mapping[str, object]) -> None:
        """Lay its files out."""
        for name, text in self.files.items():
            (folder / name).write_text(_filled(text, places), encoding="utf-8")


def _filled(text: str, places: Mapping[str, object]) -> str:
    """Only the names given are put in: other braces may stand in a file."""
    for name, value in places.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _litellm_config() -> str:
    reached = {"model": f"openai/{MODEL}", "api_base": "http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    models = [{"model_name": MODEL, "litellm_params": reached}]
    no_keys = {"dangerously_permit_weak_or_unset_master_key": True}  # nobody here checks keys
    return json.dumps({"model_list": models, "general_settings": no_keys})  # JSON is YAML


#: The upstream itself.
DIRECT = Party("direct", HERE, arguments=("-m", "everlong.lab.speed.gateways.upstream", "{port}"))
#: Bytes passed on unread.
HOP = Party(
    "a hop that reads nothing", HERE, arguments=("-m", "everlong.lab.speed.gateways.hop", "{port}", "{upstream}")
)
SERVE = (
    *("-m", "everlong", "serve", "--port", "{port}"),
    *("--upstream", "http://127.0.0.1:{upstream}/v1", "--store", "memory:"),
)
EVERLONG = Party("**everlong** `serve`", SERVER, arguments=SERVE)
EVERLONG_ANTHROPIC = Party("**everlong** `serve`, Anthropic's format", SERVER, arguments=SERVE, fmt=ANTHROPIC)
#: All but the upstream, in the order of the tables.
PARTIES = (
    HOP,
    EVERLONG,
    EVERLONG_ANTHROPIC,
    Party(
        "litellm proxy",
        ENVIRONMENTS["litellm-proxy"],
        "litellm",
        ("--config", "{folder}/litellm.yaml", "--host", "127.0.0.1", "--port", "{port}"),
        {"litellm.yaml": _litellm_config()},
    ),
    # Its cache would answer in the upstream's place, and it allows 60 requests a minute unless told otherwise.
    Party(
        "headroom proxy",
        ENVIRONMENTS["headroom-proxy"],
        "headroom",
        (
            *("proxy", "--port", "{port}", "--openai-api-url", "http://127.0.0.1:{upstream}/v1"),
            *("--no-cache", "--no-rate-limit"),
        ),
    ),
)
