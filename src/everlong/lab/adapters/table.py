"""The table of frameworks: where each comes from, the driver that runs it, its modes and the window of its model.

Rows only. A framework is run with our adapter in every mode; with its own compaction and with nothing in the first one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everlong.lab.adapters.errand import Errand
from everlong.lab.environments import CORE, Environment, NpmPackages

__all__ = ["ADAPTERS", "HOWS", "AdapterRow", "with_everlong"]

#: How a framework is run: with our adapter; with our adapter that is not told the window, so that it recovers from a
#: refusal; with the framework's own compaction; with none.
HOWS = ("everlong", "untold", "own", "nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRow:
    """One framework. `driver` is a module of `drivers`, or a file there that node runs.

    `modes` are a dialect (chat, responses, messages, contents), and "stream" where answers are streamed.
    """

    name: str
    title: str
    driver: str
    home: Environment | NpmPackages
    modes: tuple[str, ...]
    model: str = "scripted"
    #: Another model for a dialect, where the framework wants a name that it knows.
    models: Mapping[str, str] = field(default_factory=dict)
    #: Tokens that the model takes, the reply included.
    window: int = 16_000
    errand: Errand = field(default_factory=Errand)
    #: What the framework itself has for this; "" if it has nothing.
    own: str = ""
    #: Whether the framework lets an adapter recover from a refusal.
    recovers: bool = True
    #: Whether the adapter asks an `everlong serve`, which is then started.
    served: bool = False

    def model_in(self, mode: str) -> str:
        """Return the model that is asked for in a mode."""
        return self.models.get(mode.partition(" ")[0], self.model)

    def runs(self) -> list[tuple[str, str]]:
        """Return every mode and how it is run in it."""
        wanted = {"everlong": True, "untold": self.recovers, "own": bool(self.own), "nothing": True}
        first = [(self.modes[0], how) for how in HOWS if wanted[how]]
        return [*first, *((mode, "everlong") for mode in self.modes[1:])]


def with_everlong(name: str, *packages: str) -> Environment:
    """Return an environment with a framework and what everlong itself needs. Example: "openai-agents>=0.24,<1" """
    return Environment(f"adapter-{name}", (*packages, *CORE.requires))


ADAPTERS: dict[str, AdapterRow] = {
    row.name: row
    for row in (
        AdapterRow(
            name="openai-agents",
            title="OpenAI Agents SDK",
            driver="openai_agents",
            home=with_everlong("openai-agents", "openai-agents>=0.24,<1"),
            modes=("chat", "chat stream", "responses", "responses stream"),
            own="ToolOutputTrimmer",
        ),
        AdapterRow(
            name="litellm",
            title="litellm (its proxy)",
            driver="litellm_proxy",
            home=with_everlong("litellm", "litellm[proxy]>=1.100,<2"),
            modes=("chat", "chat stream"),
        ),
    )
}
