"""Session files as nanobot reads and writes them, as far as a store can tell."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everlong.wire import file_name

__all__ = ["NanobotSession", "path_of", "replayed"]

MOMENT = "2026-01-01T10:00:00.000000"


def path_of(folder: Path, key: str) -> Path:
    return folder / file_name(key)


@dataclass
class NanobotSession:
    """A session in nanobot's hands: the last metadata line counts, each save writes the whole file anew."""

    key: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    last_consolidated: int = 0
    created_at: str = MOMENT
    updated_at: str = MOMENT

    @classmethod
    def load(cls, folder: Path, key: str) -> "NanobotSession":
        session = cls(key)
        for line in path_of(folder, key).read_text(encoding="utf-8").split("\n"):
            fields = json.loads(line) if line.strip() else {}
            if fields.get("_type") == "metadata":
                session.metadata = fields["metadata"]
                session.created_at, session.updated_at = fields["created_at"], fields["updated_at"]
                session.last_consolidated = fields.get("last_archived", fields.get("last_consolidated", 0))
            elif fields:
                session.messages.append(fields)
        return session

    def say(self, role: str, content: str, **more: Any) -> None:
        self.messages.append({"role": role, "content": content, "timestamp": MOMENT, **more})

    def save(self, folder: Path) -> None:
        first = {
            "_type": "metadata",
            "key": self.key,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "metadata": self.metadata,
            "last_archived": self.last_consolidated,
            "last_consolidated": self.last_consolidated,
        }
        path = path_of(folder, self.key)
        beside = path.with_name(f".{path.name}.tmp")
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [first, *self.messages])
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)


def replayed(session: NanobotSession) -> list[str]:
    """What nanobot would send of its history: from the first user message after what it has consolidated."""
    rest = session.messages[session.last_consolidated :]
    users = [at for at, message in enumerate(rest) if message["role"] == "user"]
    rest = rest[users[0] :] if users else rest
    return [message["content"] for message in rest if not message.get("_command")]
