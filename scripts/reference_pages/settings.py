"""The page of the settings: engine, presets, gateway, agent, and the variables that no table has."""

import ast
import re
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path

from everlong.cli.variables import OTHERS
from everlong.compress import PRESETS, Option
from everlong.engine import SETTINGS, SURFACE_DEFAULTS, Settings
from everlong.gateway.values import read_bytes
from everlong.llm import KNOWN, USUAL_MODELS
from reference_pages.commands import marked, options_named
from reference_pages.markdown import code, generated, table
from reference_pages.source import find, resolve

__all__ = ["PAGE", "settings_page"]

PAGE = "settings.md"
GATEWAY_CONFIG, AGENT_CONFIG = "everlong.gateway.config", "everlong.agent.config"
COLUMNS = ("setting", "type", "default", "variable", "option", "")
PREFIX, GATEWAY_PREFIX = "EVERLONG_", "EVERLONG_GATEWAY_"
LONGEST_DEFAULT = 60
MIB = 2**20
LISTS = {"str": "list of texts", "Path": "list of paths", "McpServer": "table"}
INTRODUCTION = """\
Every setting has one name. You can set it in four places; a later one wins over an earlier one:

1. **The default**, in the tables below.
2. **A file**, `everlong.toml`. The gateway's settings and the engine's stand at the top, the agent's in the table
   `[agent]`. The gateway reads the file that `--config` or `EVERLONG_CONFIG` names, else `everlong.toml` in the current
   folder, else `gateway.toml` in your configuration folder. The agent reads the file that `EVERLONG_CONFIG` names, else
   `everlong.toml` in its folder, else `config.toml` in your configuration folder. `EVERLONG_CONFIG=none` reads no
   file. A file that only lies in the current folder may be someone else's, such as in a cloned repository: it cannot
   name code to run, the agent takes no rights and no server from it, and `everlong wrap` does not read it.
3. **The environment**: `EVERLONG_NAME` for the library and the agent, `EVERLONG_GATEWAY_NAME` for the gateway.
4. **An option** of the command, or an argument in your code.

A wrong name or value is an error: one line says where it was set and what is wrong with it. A thread can have settings
of its own, as JSON: `store.change(thread, settings='{"mode": "trim"}')`.
"""
ENGINE = """\
Fields of [`Settings`](api/everlong.md#settings). The key in a file is the name. The gateway reads variables that begin
with `EVERLONG_GATEWAY_` instead: `EVERLONG_GATEWAY_THRESHOLD` sets its threshold. You can write a number of tokens as
`200000`, `200_000`, `"200k"` or `"1.5M"`.
"""
PRESET_OPTIONS = """\
Each option belongs to the presets in its row; [presets](../presets.md) describes them. It is an error to set an option
that the preset in use does not have.
"""
GATEWAY = """\
Keys at the top of `everlong.toml`. In a variable, tables and lists of tables are written as JSON.
"""
AGENT = """\
Fields of [`AgentConfig`](api/agent.md#agentconfig), in the table `[agent]` of `everlong.toml`. The agent also takes the
settings of the engine, in the same table. Settings marked with \\* are ignored in the file of the folder that you work
in, because somebody else may have written it. Set them in your own file, in the environment or with an option.
"""
#: Options of commands whose parameter has another name than the setting.
OTHER_OPTIONS = {"approval": "everlong chat --yes", "sandbox_network": "everlong chat --network", "language": ""}
#: The tables inside the gateway's file: the field, how its heading is written, and where it is defined.
TABLES = (
    ("[[upstreams]]", "UpstreamTable"),
    ("[[upstreams.also]]", "AddressTable"),
    ("[[keys]]", "KeyTable"),
    ("[keys.limits]", "Limits"),
    ("[users]", "UsersTable"),
    ("[deployments.NAME]", "Deployment"),
)


def settings_page() -> str:
    """Return the page of all settings."""
    lines = [generated("the settings of the program"), "# Settings", "", *INTRODUCTION.split("\n")]
    own = {each.name for each in fields(Settings)}
    lines += ["## Engine", "", *ENGINE.split("\n"), *_engine_table([each for each in SETTINGS if each.name in own])]
    lines += _surfaces()
    lines += ["## Options of presets", "", *PRESET_OPTIONS.split("\n"), *_preset_table()]
    lines += ["## Gateway", "", *GATEWAY.split("\n"), *_gateway_table("GatewayConfig", top=True)]
    for heading, name in TABLES:
        definition = find(GATEWAY_CONFIG, name)
        assert definition is not None
        lines += [f"### {code(heading)}", "", definition.doc.replace("\n", " "), "", *_gateway_table(name)]
    lines += ["## Agent", "", *AGENT.split("\n"), *_agent_table("AgentConfig", top=True)]
    lines += ["### `[agent.subagents]`", "", *_agent_table("SubAgents")]
    lines += ["### `[agent.mcp.NAME]`", "", *_agent_table("McpServer")]
    lines += ["## Other variables", "", *_other_variables()]
    lines += ["## Providers", "", *_providers()]
    return "\n".join(lines).rstrip() + "\n"


# --- engine and presets ---------------------------------------------------------------------------


def _engine_table(options: list[Option]) -> list[str]:
    rows = []
    for option in options:
        variable = code(PREFIX + option.name.upper())
        rows.append(
            (
                code(option.name),
                _kind(option),
                _shown(option.default),
                variable,
                _flags(option.name),
                marked(option.help),
            )
        )
    return table(COLUMNS, rows)


def _kind(option: Option) -> str:
    """Return the type and the bounds of a setting, in words."""
    if option.choices:
        return ", ".join(map(code, option.choices))
    kind = {str: "text", int: "whole number", float: "number"}[option.kind]
    unit = f" of {option.unit}" if option.unit in ("tokens", "characters", "seconds") else ""
    kind = "share" if option.unit == "share" else f"{kind}{unit}"
    least, most = option.least, option.most
    if least is None and most is None:
        return kind
    if most is None:
        return f"{kind}, {'more than' if option.above else 'at least'} {least:g}"
    return (
        f"{kind}, {'above' if option.above else 'from'} {least or 0:g} {'and up ' if option.above else ''}to {most:g}"
    )


def _flags(name: str) -> str:
    """Return the options of commands that set a value of the engine."""
    found = [
        f"{command} {flags[name]}" for command in ("serve", "chat", "wrap") if name in (flags := options_named(command))
    ]
    return ", ".join(code(f"everlong {each}") for each in found)


def _surfaces() -> list[str]:
    differing = {surface: values for surface, values in SURFACE_DEFAULTS.items() if values}
    lines = ["Some surfaces start with other values:", ""]
    rows = [
        (
            surface.replace("app, off", "app, with automatic compaction off"),
            ", ".join(code(f"{name} = {value}") for name, value in values.items()),
        )
        for surface, values in differing.items()
    ]
    return [*lines, *table(("surface", "starts with"), rows)]


def _preset_table() -> list[str]:
    own = {each.name for each in fields(Settings)}
    rows = []
    for option in (each for each in SETTINGS if each.name not in own):
        users = [preset.name for preset in PRESETS.values() if option.name in {each.name for each in preset.options}]
        variable = code(PREFIX + option.name.upper())
        rows.append(
            (
                code(option.name),
                ", ".join(map(code, users)),
                _kind(option),
                _shown(option.default),
                variable,
                marked(option.help),
            )
        )
    return table(("option", "presets", "type", "default", "variable", ""), rows)


# --- gateway and agent ----------------------------------------------------------------------------


def _annotations(module: str, name: str) -> dict[str, tuple[str, str]]:
    """Return the types and comments of a class's fields as they are written; aliases by what they stand for."""
    definition = find(module, name)
    assert definition is not None
    assert isinstance(definition.node, ast.ClassDef)
    found = {}
    for statement in definition.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            home = definition.module
            written = home.annotation(statement.annotation)
            alias = resolve(home, name) if (name := written.removesuffix(" | None")).isidentifier() else None
            if alias is not None and isinstance(alias.node, ast.AnnAssign) and alias.node.value is not None:
                written = alias.module.annotation(alias.node.value)
            found[statement.target.id] = (written, home.comment(statement))
    return found


def _type(annotation: str) -> str:
    """Return a type in words that a person who writes a file understands."""
    choices = re.fullmatch(r"Literal\[(.*)\](?: \| None)?", annotation)
    if choices:
        return ", ".join(code(word.strip(" \"'")) for word in choices[1].split(","))
    words = {
        "str": "text",
        "JsonText": "JSON text",
        "Path": "path",
        "int": "whole number",
        "float": "number",
        "bool": "`true` or `false`",
    }
    plain = annotation.removesuffix(" | None")
    if many := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", plain):
        return LISTS.get(many[1], "list of tables")
    if plain == "tuple[tuple[str, str], ...]" or plain.startswith(("dict[", "Mapping[")) or plain not in words:
        return "table"
    return words[plain]


def _shown(value: object) -> str:
    """Return a default as people write it in a file; "" where nothing is set."""
    if value is MISSING or value is None or value in ("", (), {}) or value == Path():
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, int) and value and value % MIB == 0:
        return code(f"{value // MIB} MiB")
    if isinstance(value, tuple):
        return code(", ".join(map(str, value)))
    text = str(value)
    return code(text) if isinstance(value, str | int | float) and len(text) <= LONGEST_DEFAULT else ""


def _gateway_table(name: str, *, top: bool = False) -> list[str]:
    """Return the fields of one table of the gateway's file; those at the top have variables and options."""
    written = _annotations(GATEWAY_CONFIG, name)
    flags = options_named("serve")
    rows = []
    for each in fields(getattr(import_module(GATEWAY_CONFIG), name)):
        if not each.metadata:
            continue
        kind = "number of bytes" if each.metadata["read"] is read_bytes else _type(written[each.name][0])
        variable = code(GATEWAY_PREFIX + each.name.upper()) if top else ""
        flag = code(f"everlong serve {flags[each.name]}") if top and each.name in flags else ""
        rows.append((code(each.name), kind, _shown(each.default), variable, flag, marked(each.metadata["help"])))
    return table(COLUMNS, rows)


def _agent_table(name: str, *, top: bool = False) -> list[str]:
    """Return the fields of one table of the agent's file."""
    written = _annotations(AGENT_CONFIG, name)
    flags = options_named("chat")
    rows = []
    for each in fields(getattr(import_module(AGENT_CONFIG), name)):
        if (top and not each.metadata) or each.name == "name":
            continue
        annotation, comment = written[each.name]
        mark = "\\*" if each.metadata.get("trusted") else ""
        variable = code(PREFIX + each.name.upper()) if top and each.metadata.get("variable") else ""
        flag = OTHER_OPTIONS.get(each.name, f"everlong chat {flags[each.name]}" if each.name in flags else "")
        shown = code(flag) if top and flag else ""
        rows.append(
            (f"{code(each.name)}{mark}", _type(annotation), _shown(each.default), variable, shown, marked(comment))
        )
    return table(COLUMNS, rows)


# --- what no table of settings has ----------------------------------------------------------------


def _other_variables() -> list[str]:
    rows = [(code(PREFIX + name), marked(said)) for name, said in sorted(OTHERS.items()) if said]
    return table(("variable", ""), rows)


def _providers() -> list[str]:
    rows = [
        (
            code(name),
            code(url),
            code(fmt),
            code(variable) if variable else "none",
            code(model) if (model := USUAL_MODELS.get(name)) else "",
        )
        for name, (url, fmt, variable) in KNOWN.items()
    ]
    said = (
        "An upstream may be one of these names. The key comes from the variable. `NAME_BASE_URL`, such as "
        "`OPENAI_BASE_URL`, names another address, as it does for the provider's own SDK."
    )
    return [said, "", *table(("provider", "address", "format", "key", "model if you name none"), rows)]
