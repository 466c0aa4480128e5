"""The clients that `everlong wrap` knows, one per file; a row here makes a client known."""

from collections.abc import Mapping

from everlong.cli.wrap.client import Client
from everlong.cli.wrap.clients.aider import AIDER
from everlong.cli.wrap.clients.any_command import ANY_COMMAND
from everlong.cli.wrap.clients.claude_code import CLAUDE_CODE
from everlong.cli.wrap.clients.codex import CODEX
from everlong.cli.wrap.clients.gemini_cli import GEMINI_CLI
from everlong.cli.wrap.clients.llm import LLM
from everlong.cli.wrap.clients.openclaw import OPENCLAW
from everlong.cli.wrap.clients.opencode import OPENCODE
from everlong.cli.wrap.clients.pi import PI
from everlong.cli.wrap.clients.qwen_code import QWEN_CODE

__all__ = ["ANY_COMMAND", "CLIENTS", "client_named"]

CLIENTS: tuple[Client, ...] = (CLAUDE_CODE, CODEX, OPENCODE, PI, GEMINI_CLI, QWEN_CODE, AIDER, OPENCLAW, LLM)
NAMES: Mapping[str, Client] = {name: client for client in CLIENTS for name in (client.name, *client.aliases)}


def client_named(name: str) -> Client | None:
    """Return the client with this name or alias; None if there is none."""
    return NAMES.get(name.lower())
