"""Probes made from anyone's transcripts."""

import json
import shutil
from pathlib import Path

import pytest

from everlong.core import History, Role
from everlong.errors import InputError
from everlong.lab.data import Conversation
from everlong.lab.measures.probes import MOST_PROBES, found_probes, probe_cases, probes_in
from everlong.lab.replay.sources import sessions_in
from everlong.lab.strategies.strategy import counter
from everlong.lab.transcripts import save
from everlong.wire import OPENAI_CHAT
from tests.lab.folders import DATA, said, step

FAR = "a quiet line of output that says nothing at all\n" * 400  # more than 3 000 tokens
NEAR = "a quiet line of output\n" * 20
LINE = "return departure + timedelta(days=1)"


def used_after(between: str, arguments: dict[str, object], first: str = "") -> History:
    """Something is shown, something else follows, then a call uses it."""
    shown = first or f"def next_departure_from(harbour):\n    {LINE}\nsee office/timetable.py, ticket HB72QX"
    return (
        said(Role.USER, "look"),
        *step(1, shown),
        *step(2, between),
        *step(3, "done", json.dumps(arguments)),
    )


KINDS = {
    "edit_line": ({"old_string": f"x\n    {LINE}"}, LINE),
    "path": ({"path": "office/timetable.py"}, "timetable.py"),
    "identifier": ({"query": "next_departure_from"}, "next_departure_from"),
    "code": ({"command": "close HB72QX"}, "HB72QX"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_probe_of_each_kind_is_found(kind: str) -> None:
    arguments, needle = KINDS[kind]
    found = [probe for probe in found_probes(used_after(FAR, arguments), counter()) if probe.kind == kind]
    assert [(probe.needle, probe.at, probe.sources) for probe in found] == [(needle, 5, (2,))]
    assert found[0].distance >= 3_000


def test_an_agent_that_acts_in_its_text_gives_probes_too() -> None:
    history = (*used_after(FAR, {})[:5], said(Role.ASSISTANT, "I look.\n\n```bash\ncat office/timetable.py\n```"))
    (found,) = found_probes(history, counter())
    assert (found.kind, found.needle, found.at) == ("path", "timetable.py", 5)
    asked = (*history[:5], said(Role.USER, "```bash\ncat office/timetable.py\n```"))
    assert not found_probes(asked, counter())


def test_what_stood_near_is_no_probe() -> None:
    assert not found_probes(used_after(NEAR, KINDS["code"][0]), counter())


def test_what_never_stood_before_is_no_probe() -> None:
    assert not found_probes(used_after(FAR, {"command": "close ZZ99QQ"}), counter())


def test_what_stands_in_many_messages_is_no_probe() -> None:
    often = tuple(message for at in range(4) for message in step(10 + at, "ticket HB72QX"))
    assert not found_probes((*often, *used_after(FAR, KINDS["code"][0])), counter())


def test_a_long_conversation_gives_a_dozen_at_most() -> None:
    codes = [f"AB{number}ZK" for number in range(10, 40)]
    later = tuple(
        message for at, code in enumerate(codes) for message in step(100 + at, "ok", json.dumps({"command": code}))
    )
    history = (*step(1, "\n".join(codes)), *step(2, FAR), *later)
    found = found_probes(history, counter())
    assert len(found) == MOST_PROBES
    assert found[-1].at - found[0].at > len(history) // 2


def test_the_same_file_gives_the_same_probes_from_any_format() -> None:
    history = used_after(FAR, KINDS["code"][0])
    chat = json.dumps([row for message in history for row in OPENAI_CHAT.write_message(message)]).encode()
    anthropic = json.dumps(
        {
            "max_tokens": 10,
            "messages": [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "run", "input": {}}]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "a", "content": history[2].results[0].text}],
                },
                {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "run", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": FAR}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c", "name": "run", "input": KINDS["code"][0]}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
            ],
        }
    ).encode()
    found = [sessions_in(data, "talk.json", print)[0].cases for data in (chat, anthropic)]
    assert [case.wanted for case in found[0]] == [case.wanted for case in found[1]] == [("HB72QX",)]
    assert found[0][0].at == found[1][0].at


def test_what_is_saved_reads_back_as_the_same_cases(tmp_path: Path) -> None:
    one = Conversation("mine", "mine", "openai-chat", used_after(FAR, KINDS["path"][0]))
    made = probes_in(one, counter())
    save(tmp_path, [one], [made])
    (read,) = probe_cases(tmp_path, ("mine",))
    assert (read.conversation.id, read.cases) == ("mine", made.cases)
    assert [counter().message(message) for message in read.conversation.messages] == list(
        map(counter().message, one.messages)
    )


def test_a_set_with_probes_of_its_own_lies_beside_sets_that_share_theirs(tmp_path: Path) -> None:
    shared = tmp_path / "agents"
    shutil.copytree(DATA / "agents", shared)
    mine = Conversation("mine", "ferries", "me/ferries", used_after(FAR, KINDS["path"][0]))
    save(tmp_path, [mine], [probes_in(mine, counter())])
    stray = {"conversation": "mine", "file": "ferries", "at": 5, "kind": "code", "needle": "of the shared file"}
    listed = shared / "probes.jsonl"
    listed.write_text(f"{listed.read_text()}{json.dumps(stray)}\n")
    both = probe_cases(tmp_path, ("ferries", "office"))
    assert [group.conversation.id for group in both] == ["mine", "ferry-office", "tea-shop"]
    assert [case.wanted for case in both[0].cases] == [("timetable.py",)]
    assert probe_cases(tmp_path, ("ferries",)) == both[:1]
    assert probe_cases(tmp_path, ("office",)) == both[1:] == probe_cases(DATA, ("office",))


def test_probes_know_their_kind_and_source() -> None:
    found = probe_cases(DATA, ("office",))
    assert [group.conversation.id for group in found] == ["ferry-office", "tea-shop"]
    assert [dict(case.groups)["kind"] for case in found[0].cases] == ["edit_line", "path", "identifier", "code"]
    assert dict(found[1].cases[0].groups)["source"] == "everlong/tea"
    assert [case.at for case in found[0].cases] == sorted(case.at for case in found[0].cases)


def test_a_probe_of_a_conversation_that_is_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/a.jsonl").write_text('{"id": "x", "messages": []}\n')
    (tmp_path / "agents/probes.jsonl").write_text(
        '{"conversation": "y", "file": "a", "at": 1, "kind": "path", "needle": "z"}\n'
    )
    with pytest.raises(InputError, match="no conversation 'y' in a"):
        probe_cases(tmp_path, ("a",))


def test_a_probe_at_no_number_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "w.jsonl").write_text(json.dumps({"id": "a", "messages": []}))
    probe = {"id": "a#0", "conversation": "a", "file": "w", "at": "twelve", "kind": "path", "needle": "x"}
    (tmp_path / "agents" / "probes.jsonl").write_text(json.dumps(probe))
    with pytest.raises(InputError, match="a#0 cannot be read"):
        probe_cases(tmp_path, ("w",))
