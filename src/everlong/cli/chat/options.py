"""The options of `everlong chat` as one value, and the agent's configuration that follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from everlong.agent import DEFAULT_CONFIG, AgentConfig, at_home, folder_config
from everlong.cli.words.language import Language
from everlong.errors import InputError

__all__ = ["LOCAL_WINDOW", "ChatOptions", "config_for", "for_local_model"]

LOCAL_WINDOW = 8_192
LOCAL_REPLY = 220  # tokens; the local model writes about twenty a second and does not stop by itself
LOCAL_SYSTEM = "You are a helpful assistant. Answer in a few sentences."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The options of the command; None and "" mean not given."""

    language: Language
    message: str | None = None
    json_wanted: bool = False
    model: str | None = None
    upstream: str | None = None
    local: bool = False
    sample: bool = False
    latest: bool = False
    thread: str | None = None
    store: str | None = None
    workspace: str | None = None
    yes: bool = False
    no_tools: bool = False
    system: str | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        if self.local and self.upstream:
            raise InputError("--local and --upstream: which of the two?")
        if sum((self.latest, self.thread is not None, self.sample)) > 1:
            raise InputError("--continue, --thread and --sample: only one of them")


def config_for(options: ChatOptions, environment: Mapping[str, str]) -> tuple[AgentConfig, tuple[str, ...]]:
    """Return the configuration from file, variables and options, and the ignored fields of the folder's file."""
    folder = at_home(options.workspace) if options.workspace else Path.cwd()
    if not folder.is_dir():
        raise InputError(f"the workspace {str(folder)!r} is not a folder")
    given: dict[str, object] = {
        "model": options.model,
        "system": options.system,
        "preset": options.preset,
        "workspace": options.workspace,
        "approval": "always" if options.yes else None,
    }
    config, ignored = folder_config(environment, folder, given)
    return replace(config, workspace=config.workspace.resolve()), ignored


def for_local_model(config: AgentConfig) -> AgentConfig:
    """Return a configuration for the slow local model: a short system text and short answers."""
    system = LOCAL_SYSTEM if config.system == DEFAULT_CONFIG.system else config.system
    return replace(config, model="local", system=system, max_tokens=config.max_tokens or LOCAL_REPLY)
