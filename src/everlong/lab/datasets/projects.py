"""The public projects whose agent sessions the lab was measured on: their location, licences and halves.

Whole projects are in one half: what is tuned on some is confirmed on others. The halves were fixed before any figure
was seen. Sessions are in a branch that the tool Entire keeps, or in folders of published runs.
"""

from dataclasses import dataclass, replace

__all__ = ["PROJECTS", "ProjectRow"]

#: The branch in which Entire keeps a project's sessions.
CHECKPOINTS = "entire/checkpoints/v1"
MIT, APACHE, NOT_COMMERCIAL, UNSTATED = "MIT", "Apache-2.0", "PolyForm Noncommercial 1.0.0", "none stated"
JAVA_RUNS = "multi-swe-bench/experiments"
PYTHON_RUNS = "gruckion/mini-swe-agent"
JAVA_FOLDER = "evaluation/java/verified/*/trajs"
JAVA_OTHERS = ("apache*.traj", "google*.traj", "fasterxml__jackson-core-*.traj", "fasterxml__jackson-dataformat-*.traj")
PYTHON_FOLDER = "swebench_results/20251118_gemini-3-pro-74pct/trajs/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """One project. `source` is what was worked on, `repository` has the sessions, at `commit` when they were measured.

    `code` are the languages of the code, `agents` the programs; `files` are shell patterns for the sessions in a clone.
    """

    source: str
    code: str
    agents: str
    licence: str
    commit: str
    conversations: int
    probes: int
    repository: str
    branch: str = ""
    half: str = ""
    files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its file in the data folder. Example: JanDeDobbeleer/oh-my-posh -> oh-my-posh"""
        return self.source.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The folder that `git clone` creates."""
        return self.repository.rpartition("/")[2]

    @property
    def address(self) -> str:
        """Where it can be cloned."""
        return f"https://github.com/{self.repository}"


def _kept(source: str, code: str, agents: str, licence: str, commit: str, size: tuple[int, int]) -> ProjectRow:
    """A project that keeps its own sessions."""
    return ProjectRow(
        source=source,
        code=code,
        agents=agents,
        licence=licence,
        commit=commit,
        conversations=size[0],
        probes=size[1],
        repository=source,
        branch=CHECKPOINTS,
    )


def _published(source: str, code: str, files: tuple[str, ...], size: tuple[int, int]) -> ProjectRow:
    """A project on which others let agents work."""
    java = code == "Java"
    return ProjectRow(
        source=source,
        code=code,
        agents="SWE-agent" if java else "mini-SWE-agent",
        licence=UNSTATED if java else MIT,
        commit="89888f160400" if java else "d12a71affd95",
        conversations=size[0],
        probes=size[1],
        repository=JAVA_RUNS if java else PYTHON_RUNS,
        files=tuple(f"{JAVA_FOLDER if java else PYTHON_FOLDER}/{name}" for name in files),
    )


SEVERAL = "Codex, OpenCode, Gemini CLI"
TUNING = (
    _kept("JanDeDobbeleer/oh-my-posh", "Go", "Claude Code", MIT, "0d1116c02814", (42, 276)),
    _kept("PackmindHub/context-evaluator", "TypeScript", "Claude Code", APACHE, "63679d4764ce", (97, 425)),
    _kept("savekirk/session-bridge", "TypeScript", SEVERAL, MIT, "ea93acc9980a", (24, 209)),
    _kept("dayhaysoos/nimbus", "TypeScript", "OpenCode", MIT, "5e57daf29555", (60, 154)),
    _kept("codyborders/yinshi", "Python", "pi", UNSTATED, "b6a0c2335085", (9, 108)),
    _kept("rommeld/leeson", "Rust", "Claude Code", NOT_COMMERCIAL, "9fa2d0c7d768", (32, 234)),
    _published("FasterXML/jackson-databind", "Java", ("fasterxml__jackson-databind-*.traj",), (102, 32)),
    _published("sympy/sympy", "Python", ("sympy__*.traj.json",), (60, 152)),
)
CONFIRMING = (
    _kept("Safecast/safecast-map-MCP", "Go", "Claude Code", MIT, "5ef9f6d6457c", (24, 152)),
    _kept("FSM1/cipher-box", "TypeScript, Rust", "Claude Code", MIT, "e227f1183b59", (32, 238)),
    _kept("EntityProcess/agentv", "TypeScript", "Codex, Claude Code", MIT, "47dca0eea369", (22, 200)),
    _kept("eitatech/gatomia-vscode", "TypeScript", "OpenCode", MIT, "9ed6cc87c8b5", (40, 188)),
    _kept("raquezha/pi.dev", "TypeScript", "pi", MIT, "2da9d660b646", (10, 34)),
    _kept("theexperiencecompany/gaia", "Python, TypeScript", "Claude Code", NOT_COMMERCIAL, "7be372234a43", (9, 99)),
    _published("Multi-SWE-bench/java-other", "Java", JAVA_OTHERS, (77, 28)),
    _published("django/django", "Python", ("django__*.traj.json",), (60, 350)),
)

#: By name.
PROJECTS: dict[str, ProjectRow] = {
    row.name: replace(row, half=half) for half, rows in (("tuning", TUNING), ("confirming", CONFIRMING)) for row in rows
}
