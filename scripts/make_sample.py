"""Writes the sample conversation that ships with the package: src/everlong/engine/sample.json.

    python scripts/make_sample.py [OTHER_TARGET]

The talk is written by hand in `sample/dialogue-*.txt`. The tools in it are played here: files are
really read, searched and edited (so a second read shows the edit), and long answers come from a
small invented bookshop. The same input gives the same bytes on every machine and Python.

A dialogue file is a row of blocks, each opened by a line `%% kind argument`:

    %% user NAME          what a person says
    %% image              a small picture beside it
    %% assistant          a message of the assistant; the calls up to the next message are made at once
    %% think              its reasoning
    %% read PATH          calls whose answer is computed
    %% search TEXT
    %% edit PATH          the body is old and new text, parted by a line of equals signs
    %% call NAME JSON     any other call; the body is the answer, or `= name` for one made here
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sample_bookshop import ANSWERS, picture

HERE = Path(__file__).parent / "sample"
TARGET = Path(__file__).parent.parent / "src" / "everlong" / "engine" / "sample.json"
MODEL = "gpt-4o"
SEAM = "=======\n"
SIGNS = str.maketrans({"␛": "\x1b", "␍": "\r"})  # control characters, written as signs that editors keep

Message = dict[str, Any]


# --- the files ------------------------------------------------------------------------------------


class Workspace:
    """The service's source files, in their current state in the conversation."""

    def __init__(self) -> None:
        root = HERE / "files"
        self.files = {
            path.relative_to(root).as_posix().removesuffix(".txt"): path.read_text(encoding="utf-8")
            for path in sorted(root.rglob("*.txt"))
        }

    def read(self, path: str) -> str:
        return self.files.get(path, f"Error: no such file: {path}")

    def search(self, text: str) -> str:
        hits = [
            f"{path}:{number}: {line.strip()}"
            for path, content in sorted(self.files.items())
            for number, line in enumerate(content.splitlines(), 1)
            if text in line
        ]
        return "\n".join([*hits, f"({len(hits)} matches)"])

    def edit(self, path: str, old: str, new: str) -> str:
        if not old and path not in self.files:
            self.files[path] = new
            lines = len(new.splitlines())
            return (
                f"Created {path}: the file is new and has {lines} lines. Nothing else was changed. Tests were not run."
            )
        before, *after = self.files.get(path, "").split(old)
        if len(after) != 1:
            return (
                f"Error: {path}: the old text was found {len(after)} times, it must be found exactly once. "
                "Nothing was changed; read the file again and copy the text as it stands."
            )
        self.files[path] = before + new + after[0]
        line, total = len(before.splitlines()) + 1, len(self.files[path].splitlines())
        return (
            f"Edited {path} at line {line} (lines out: {len(old.splitlines())}, in: {len(new.splitlines())}). "
            f"The file has {total} lines now. Tests were not run."
        )


# --- the conversation -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """`%% kind argument` and the lines below it."""

    kind: str
    argument: str
    body: str


def blocks() -> Iterator[Block]:
    for path in sorted(HERE.glob("dialogue-*.txt")):
        for piece in ("\n" + path.read_text(encoding="utf-8")).split("\n%% ")[1:]:
            head, _, body = piece.partition("\n")
            kind, _, argument = head.partition(" ")
            yield Block(kind, argument, body.strip("\n").translate(SIGNS))


@dataclass
class Conversation:
    """The conversation so far: grows block by block; call ids count up."""

    messages: list[Message]
    workspace: Workspace = field(default_factory=Workspace)
    pending: list[Message] = field(default_factory=list)
    calls: int = 0

    def add(self, block: Block) -> None:
        match block.kind:
            case "user":
                self._speak({"role": "user", "name": block.argument, "content": block.body})
            case "assistant":
                self._speak({"role": "assistant", "content": block.body or None})
            case "think":
                self.messages[-1]["reasoning_content"] = block.body
            case "image":
                words = {"type": "text", "text": self.messages[-1]["content"]}
                self.messages[-1]["content"] = [words, {"type": "image_url", "image_url": {"url": picture()}}]
            case "read":
                self._call("read_file", {"path": block.argument}, self.workspace.read(block.argument))
            case "search":
                self._call("search_code", {"text": block.argument}, self.workspace.search(block.argument))
            case "edit":
                old, _, new = f"{block.body}\n".partition(SEAM)
                change = {"path": block.argument, "old": old, "new": new}
                self._call("edit_file", change, self.workspace.edit(block.argument, old, new))
            case "call":
                name, _, arguments = block.argument.partition(" ")
                self._call(name, json.loads(arguments), answer(block.body))
            case _:
                raise ValueError(f"unknown block {block.kind!r}")

    def _speak(self, message: Message) -> None:
        self.messages += self.pending
        self.pending = []
        self.messages.append(message)

    def _call(self, name: str, arguments: dict[str, Any], result: str) -> None:
        self.calls += 1
        call = f"call_{self.calls:03d}"
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        self.messages[-1].setdefault("tool_calls", []).append({"id": call, "type": "function", "function": function})
        self.pending.append({"role": "tool", "tool_call_id": call, "content": result})


def answer(body: str) -> str:
    """Return the body itself, or the answer that it names: one computed here or one from a file."""
    if not body.startswith("= "):
        return body
    name = body.removeprefix("= ")
    if name in ANSWERS:
        return ANSWERS[name]()
    return (HERE / "answers" / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n").translate(SIGNS)


def sample() -> str:
    """Return the request body for the file."""
    system = (HERE / "system.md").read_text(encoding="utf-8").strip()
    conversation = Conversation([{"role": "system", "content": system}])
    for block in blocks():
        conversation.add(block)
    tools = json.loads((HERE / "tools.json").read_text(encoding="utf-8"))
    body = {"model": MODEL, "tools": tools, "messages": conversation.messages}
    return json.dumps(body, ensure_ascii=False, indent=1) + "\n"


def main(target: Path = TARGET) -> None:
    target.write_bytes(sample().encode())
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
