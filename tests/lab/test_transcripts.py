"""Anyone's own transcripts as a data set: a folder is one project, a session counts once, no secret is kept."""

import json
from pathlib import Path

from everlong.core import Image, Message, Role, Text
from everlong.lab.data import Conversation, agents, rows
from everlong.lab.measures.probes import probe_cases
from everlong.lab.transcripts import conversations_at, hidden, save
from everlong.wire import OPENAI_CHAT
from tests.lab.folders import said, step

KEY = "sk-proj-" + "Zx9Qw2Lm7Rt4Vb8Nc1Kd5Hf3Js6Py0Ua"


def put(path: Path, messages: tuple[Message, ...]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([row for message in messages for row in OPENAI_CHAT.write_message(message)]))
    return path


def talk(*turns: str) -> tuple[Message, ...]:
    return tuple(said(Role.USER if at % 2 == 0 else Role.ASSISTANT, text) for at, text in enumerate(turns))


def test_all_conversations_of_a_folder_are_one_set_named_after_it(tmp_path: Path) -> None:
    put(tmp_path / "ferries" / "a" / "one.json", talk("how many boats?", "seven"))
    put(tmp_path / "ferries" / "two.json", talk("when?", "at nine"))
    (tmp_path / "ferries" / "package.json").write_text('{"name": "ferries"}')
    told: list[str] = []
    found = conversations_at([str(tmp_path / "ferries")], told.append)
    assert [(one.id, one.data, one.source) for one in found] == [
        ("ferries/one", "ferries", "ferries"),
        ("ferries/two", "ferries", "ferries"),
    ]
    assert told == ["1 file is not a conversation: package.json"]
    (named, _) = conversations_at([str(tmp_path / "ferries")], told.append, "harbour/timetable")
    assert (named.id, named.data, named.source) == ("timetable/one", "timetable", "harbour/timetable")


def test_a_file_keeps_its_own_name_and_format(tmp_path: Path) -> None:
    (found,) = conversations_at([str(put(tmp_path / "talk.json", talk("when?", "at nine")))], print)
    assert (found.id, found.data, found.source) == ("talk", "talk", "openai-chat")


def test_files_of_one_name_and_one_project_have_each_their_own_id(tmp_path: Path) -> None:
    paths = [
        str(put(tmp_path / model / "boats.json", talk("how many boats?", f"{model} counts"))) for model in ("a", "b")
    ]
    found = conversations_at(paths, print, "harbour/ferries")
    assert [(one.id, one.data) for one in found] == [("ferries/boats", "ferries"), ("ferries/b/boats", "ferries")]


def test_of_many_states_of_one_session_the_longest_counts(tmp_path: Path) -> None:
    whole = talk("how many boats?", "seven", "and tomorrow?", "eight")
    put(tmp_path / "p" / "1" / "full.json", whole[:2])
    put(tmp_path / "p" / "2" / "full.json", whole)
    put(tmp_path / "p" / "3" / "full.json", (*whole[:3], said(Role.ASSISTANT, "eig")))
    put(tmp_path / "p" / "4" / "full.json", talk("how many boats?", "seven", "why?", "the fog", "so?", "wait"))
    found = conversations_at([str(tmp_path / "p")], print)
    assert [[message.text for message in one.messages][-1] for one in found] == ["eight", "wait"]
    assert len({one.id for one in found}) == 2


def test_what_is_saved_holds_no_secret_and_no_picture(tmp_path: Path) -> None:
    shown = Message(Role.USER, (Text("my key is in .env"), Image(data="iVBORw0KGgo=", media_type="image/png")))
    command = json.dumps({"command": f"export OPENAI_API_KEY={KEY}"})
    one = Conversation("a", "mine", "me/mine", (shown, *step(1, f"OPENAI_API_KEY={KEY}", command)))
    clean = hidden(one)
    save(tmp_path, [clean], [], "confirming")
    written = (tmp_path / "agents" / "mine.jsonl").read_text()
    assert KEY not in written
    assert "iVBORw0KGgo" not in written
    assert "[image omitted]" in written
    assert json.loads(clean.messages[1].calls[0].arguments)["command"].startswith("export OPENAI_API_KEY=")
    assert [row["half"] for row in rows(tmp_path / "agents" / "mine.jsonl")] == ["confirming"]
    assert [read.messages for read in agents(tmp_path, "mine")] == [clean.messages]
    assert probe_cases(tmp_path, ("mine",)) == []


def test_what_is_no_secret_stays_as_it_was() -> None:
    arguments = '{"path":  "office/timetable.py"}'
    one = Conversation("a", "mine", "me/mine", (said(Role.USER, "look"), *step(1, "def leave(): ...", arguments)))
    clean = hidden(one)
    assert [message.parts for message in clean.messages] == [message.parts for message in one.messages]
