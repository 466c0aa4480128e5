"""`everlong sessions`: what its commands print, keep and refuse."""

import json
import re
import zipfile
from pathlib import Path

import pytest

from everlong.core import Point, Withdrawal
from everlong.store import open_store
from tests.cli.running import Ran, everlong
from tests.store.contract.entries import talk
from tests.wire.sessions.samples import CHATGPT, CLAUDE_COMPACTED, CODEX, NANOBOT_NEWER, PI_3

FILES = {"claude.jsonl": CLAUDE_COMPACTED, "codex.jsonl": CODEX, "nanobot.jsonl": NANOBOT_NEWER, "pi.jsonl": PI_3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of sessions, each of another program, and a file that is none."""
    made = tmp_path / "files"
    made.mkdir()
    for name, lines in FILES.items():
        named = [{**line, **({"sessionId": f"session-{name}"} if "sessionId" in line else {})} for line in lines]
        (made / name).write_text("".join(json.dumps(line) + "\n" for line in named), encoding="utf-8")
    (made / "package.json").write_text('{"version": 1}', encoding="utf-8")
    return made


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'threads.db'}"


@pytest.fixture
def talked(store: str) -> str:
    """A store with one compacted session."""
    with open_store(store) as threads:
        threads.create("talk", title="Boats and 船")
        threads.append(
            "talk", [*talk(4, "boat"), Point(boundary=4, summary=talk(1, "summary")[:1], reason="high mark")]
        )
        threads.append("talk", talk(1, "harbour"))
    return store


def sessions(*arguments: str, store: str) -> Ran:
    command, *rest = arguments
    return everlong("sessions", command, *rest, "--store", store, "--lang", "en")


def good(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.out


# --- import and list -----------------------------------------------------------------------------------


def test_a_folder_is_imported_with_its_compactions(folder: Path, store: str) -> None:
    ran = sessions("import", str(folder), store=store)
    out = good(ran)
    assert "4 sessions: 4 new, 0 updated, 0 unchanged; 24 messages added" in out
    assert "1 file contains no conversation" in out
    assert "package.json" in ran.err
    listed = json.loads(good(sessions("list", "--json", store=store)))
    assert {(one["id"], one["points"]) for one in listed} == {
        ("session-claude.jsonl", 1),
        ("s", 1),
        ("2~s", 1),
        ("cli:direct", 1),
    }
    assert {one["metadata"]["format"] for one in listed} == {"claude-code", "codex", "nanobot", "pi"}


def test_importing_again_adds_only_what_is_new(folder: Path, store: str) -> None:
    good(sessions("import", str(folder), store=store))
    assert "0 new, 0 updated, 4 unchanged; 0 messages added" in good(sessions("import", str(folder), store=store))
    grown = folder / "nanobot.jsonl"
    line = json.dumps({"role": "assistant", "content": "A dog.", "timestamp": "2026-03-01T10:00:00"})
    grown.write_text(grown.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    (report,) = json.loads(good(sessions("import", str(grown), "--json", store=store)))
    assert (report["outcome"], report["messages"], report["points"], report["known"]) == ("grown", 1, 0, 6)
    rows = json.loads(good(sessions("show", "cli:direct", "--last", "0", "--json", store=store)))["rows"]
    assert rows[-1]["text"] == "A dog."
    assert rows[-1]["message"]["time"].startswith("2026-03-01T10:00")


def test_a_file_that_tells_another_story_becomes_a_branch(tmp_path: Path, store: str) -> None:
    def written(*texts: str) -> str:
        path = tmp_path / "chat.json"
        said = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]
        path.write_text(json.dumps(said), encoding="utf-8")
        return str(path)

    good(sessions("import", written("a", "b", "c", "d"), store=store))
    (report,) = json.loads(good(sessions("import", written("a", "b", "x", "y", "z"), "--json", store=store)))
    assert (report["outcome"], report["thread"], report["branch_of"], report["messages"]) == (
        "branch",
        "2~chat",
        "chat",
        3,
    )
    assert "unchanged" in good(sessions("import", written("a", "b", "x", "y", "z"), store=store))
    assert "unchanged" in good(sessions("import", written("a", "b", "c", "d"), store=store))
    (report,) = json.loads(good(sessions("import", written("something", "else"), "--json", store=store)))
    assert (report["outcome"], report["thread"], report["branch_of"]) == ("new", "3~chat", "")


def test_what_nanobot_consolidated_since_becomes_a_new_point(tmp_path: Path, store: str) -> None:
    path = tmp_path / "nanobot.jsonl"
    said = [{"role": m.role.value, "content": m.text} for m in talk(4)]
    for done, summary in ((2, "one turn"), (6, "three turns")):
        inner = {"_last_summary": {"text": summary}}
        header = {"_type": "metadata", "key": "k", "last_consolidated": done, "metadata": inner}
        path.write_text("\n".join(map(json.dumps, [header, *said])), encoding="utf-8")
        good(sessions("import", str(path), store=store))
    with open_store(store) as threads:
        assert [row.entry.boundary for row, _ in threads.points("k") if isinstance(row.entry, Point)] == [2, 7]
        sent = [message.text for message in threads.open("k").messages]
        assert sent[0].endswith("three turns")
        assert sent[1:] == [message.text for message in talk(4)[6:]]
        assert threads.thread("k").messages == 8


def test_standard_input_is_imported_for_an_owner(store: str) -> None:
    data = json.dumps([{"role": "user", "content": "你好"}]).encode()
    ran = everlong("sessions", "import", "-", "--store", store, "--owner", "ann", "--json", stdin=data)
    assert json.loads(good(ran))[0]["title"] == "你好"
    assert json.loads(good(sessions("list", "--owner", "ann", "--json", store=store)))[0]["owner"] == "ann"
    assert json.loads(good(sessions("list", "--owner", "bob", "--json", store=store))) == []


def test_the_list_shows_titles_and_ids_that_can_be_typed(talked: str) -> None:
    with open_store(talked) as threads:
        for number in range(3):
            threads.create(f"0199aaaa-bbbb-{number}ccc-dddd-eeeeffff0000", title=f"session {number}\x1b[31m")
    out = good(sessions("list", store=talked))
    assert "Boats and 船" in out
    assert "\x1b" not in out
    short = re.findall(r"0199\S+", out)
    assert len(set(short)) == 3
    for name in short:
        assert "session" in good(sessions("show", name, store=talked))
    assert "2 more; --limit 0 shows all" in good(sessions("list", "--limit", "2", store=talked))


# --- show ------------------------------------------------------------------------------------------------


def test_show_prints_everything_with_the_boundary_marked(talked: str) -> None:
    out = good(sessions("show", "talk", store=talked))
    for message in (*talk(4, "boat"), *talk(1, "harbour")):
        assert message.text in out
    boundary = out.index("compaction point 8 · in effect · high mark")
    assert out.index("boat 1, answer") < boundary < out.index("summary 0, question") < out.index("boat 2, question")


def test_show_before_a_point_is_the_conversation_as_it_was(talked: str) -> None:
    out = good(sessions("show", "talk", "--before", "8", store=talked))
    assert "as it was before compaction point 8" in out
    assert "boat 3, answer" in out
    assert "harbour" not in out
    assert "compacted" not in out.replace("1 compaction", "")


def test_show_the_last_messages_says_how_many_are_earlier(talked: str) -> None:
    out = good(sessions("show", "talk", "--last", "2", store=talked))
    assert "8 earlier messages" in out
    assert "harbour 0, answer" in out
    assert "boat 3" not in out
    assert "summary 0" in out, "what is sent in place of the rest is shown all the same"


def test_show_shortens_long_texts_unless_told_otherwise(store: str) -> None:
    with open_store(store) as threads:
        threads.create("t")
        threads.append("t", [talk(1)[0].with_parts((*talk(1, "x" * 5_000)[0].parts,))])
    assert "more characters; --full shows all" in good(sessions("show", "t", store=store))
    assert "--full" not in good(sessions("show", "t", "--full", store=store))


def test_show_as_json_has_every_row(talked: str) -> None:
    shown = json.loads(good(sessions("show", "talk", "--json", store=talked)))
    assert [row["kind"] for row in shown["rows"]] == ["message"] * 8 + ["point"] + ["message"] * 2
    assert shown["rows"][8]["boundary"] == 4
    assert shown["rows"][8]["stands"] is True


# --- search ----------------------------------------------------------------------------------------------


def test_search_finds_compacted_words_and_shows_where(talked: str) -> None:
    out = good(sessions("search", "boats answer", store=talked))
    assert "Boats and 船" in out
    assert re.search(r"boat \d, answer", out)
    (first, *_) = json.loads(good(sessions("search", "harbour", "--json", store=talked)))
    assert (first["session"], first["title"]) == ("talk", "Boats and 船")
    assert "harbour" in first["excerpt"]


def test_search_excerpts_come_from_the_middle_of_long_texts(store: str) -> None:
    text = "nothing here " * 2_000 + "the walrus sleeps 海象在睡觉 " + "nothing there " * 2_000
    with open_store(store) as threads:
        threads.create("t")
        threads.append("t", [talk(1, text)[0]])
    for query in ("walrus", "海象"):
        (hit,) = json.loads(good(sessions("search", query, "--json", store=store)))
        assert query in hit["excerpt"]
        assert len(hit["excerpt"]) < 300


def test_search_for_nothing_says_so(talked: str) -> None:
    assert good(sessions("search", "zeppelin", store=talked)) == "Nothing found.\n"
    assert json.loads(good(sessions("search", "the", "--json", store=talked))) == []
    assert json.loads(good(sessions("search", "boat", "--in", "talk", "--limit", "3", "--json", store=talked))) != []


# --- export ----------------------------------------------------------------------------------------------


def test_export_as_openai_json(talked: str, tmp_path: Path) -> None:
    messages = json.loads(good(sessions("export", "talk", store=talked)))
    assert [message["content"] for message in messages][:2] == ["boat 0, question", "boat 0, answer"]
    assert len(messages) == 10
    sent = json.loads(good(sessions("export", "talk", "--as-sent", store=talked)))
    assert [message["content"] for message in sent][:2] == ["summary 0, question", "boat 2, question"]
    out = tmp_path / "out.json"
    assert str(out) in good(sessions("export", "talk", "-o", str(out), store=talked))
    assert json.loads(out.read_bytes()) == messages


def test_the_whole_export_of_ChatGPT_is_imported_and_our_own_comes_back(store: str, tmp_path: Path) -> None:
    archive, own, other = tmp_path / "chatgpt.zip", tmp_path / "own.json", f"sqlite:///{tmp_path / 'other.db'}"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("conversations.json", json.dumps([CHATGPT]))
        packed.writestr("user.json", '{"id": "somebody"}')
    ran = sessions("import", str(archive), store=store)
    assert "Seven boats" in good(ran)
    assert "user.json" in ran.err
    good(sessions("export", "conversation-1", "--format", "everlong", "-o", str(own), store=store))
    good(sessions("import", str(own), store=other))
    assert good(sessions("export", "conversation-1", "--format", "everlong", store=other)) == own.read_text("utf-8")
    assert "# Seven boats" in good(sessions("export", "conversation-1", "--format", "markdown", store=other))


def test_export_as_nanobot_session_and_back(talked: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    good(sessions("export", "talk", "--format", "nanobot", "-o", str(out), store=talked))
    header = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert (header["key"], header["last_consolidated"]) == ("talk", 4)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    good(sessions("import", str(out), store=other))
    again = json.loads(good(sessions("export", "talk", "--as-sent", store=other)))
    assert "summary 0, question" in again[0]["content"]
    assert [message["content"] for message in again[1:3]] == ["boat 2, question", "boat 2, answer"]


# --- changes ---------------------------------------------------------------------------------------------


def test_undo_takes_back_the_newest_compaction_and_then_refuses(talked: str) -> None:
    assert "Undone: compaction point 8. Sent in full again: 4 messages." in good(sessions("undo", "talk", store=talked))
    with open_store(talked) as threads:
        assert threads.open("talk").messages == (*talk(4, "boat"), *talk(1, "harbour"))
        assert list(threads.read("talk"))[-1].entry == Withdrawal(8)
    assert "undone" in good(sessions("show", "talk", store=talked))
    ran = sessions("undo", "talk", store=talked)
    assert ran.code == 1
    assert ran.err == "everlong: nothing to undo: session 'talk' has no compaction in effect\n"


def test_archive_and_back(talked: str) -> None:
    assert good(sessions("archive", "talk", store=talked)) == "Archived: Boats and 船\n"
    assert json.loads(good(sessions("list", "--json", store=talked))) == []
    assert len(json.loads(good(sessions("list", "--archived", "--json", store=talked)))) == 1
    assert "archived" in good(sessions("list", "--all", store=talked))
    good(sessions("unarchive", "talk", store=talked))
    assert len(json.loads(good(sessions("list", "--json", store=talked)))) == 1


def test_rename(talked: str) -> None:
    assert good(sessions("rename", "talk", "Ships", store=talked)) == "Renamed: Ships\n"
    assert json.loads(good(sessions("list", "--json", store=talked)))[0]["title"] == "Ships"


def test_branch_goes_on_after_a_message(talked: str) -> None:
    made = json.loads(good(sessions("branch", "talk", "3", "--json", store=talked)))
    assert (made["id"], made["length"], made["parent"]) == ("2~talk", 4, {"id": "talk", "rows": 4})
    assert "3~talk" in good(sessions("branch", "talk", "3", store=talked))
    assert json.loads(good(sessions("branch", "talk", "0", "--as", "mine", "--json", store=talked)))["id"] == "mine"
    assert sessions("branch", "talk", "0", "--as", "mine", store=talked).code == 1
    assert "branched off talk after message 3" in good(sessions("show", "2~talk", store=talked))


def test_pin_and_unpin_messages_and_texts(talked: str) -> None:
    assert "boat 0, question" in good(sessions("pin", "talk", "0", store=talked))
    good(sessions("pin", "talk", "--text", "Never sail on Fridays.", store=talked))
    out = good(sessions("show", "talk", store=talked))
    assert "pinned text: Never sail on Fridays." in out
    assert len(json.loads(good(sessions("show", "talk", "--json", store=talked)))["pins"]) == 2
    good(sessions("unpin", "talk", "0", store=talked))
    good(sessions("unpin", "talk", "Never sail on Fridays.", store=talked))
    assert json.loads(good(sessions("show", "talk", "--json", store=talked)))["pins"] == []


# --- one clear line ---------------------------------------------------------------------------------------

REFUSED = {
    "no such session": (("show", "none"), "no session 'none'"),
    "no such message": (("pin", "talk", "99"), "no row '99'"),
    "a point is no message": (("pin", "talk", "8"), "no message 8"),
    "no such point": (("show", "talk", "--before", "3"), "row 3 is not a compaction point; this session has points 8"),
    "no such pin": (("unpin", "talk", "5"), "no pin '5'"),
    "no such file": (("import", "none.json"), "none.json"),
    "not a conversation": (("import", __file__), "test_commands.py"),
}


@pytest.mark.parametrize(("arguments", "told"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_one_clear_line(talked: str, arguments: tuple[str, ...], told: str) -> None:
    ran = sessions(*arguments, store=talked)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert told in ran.err


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    for url in (str(tmp_path / "none.db"), f"sqlite:///{tmp_path}/none.db", f"jsonl:{tmp_path}/none"):
        ran = sessions("list", store=url)
        assert ran.code == 1
        assert "there is no store at" in ran.err
    assert list(tmp_path.iterdir()) == []
    assert "is not a store" in sessions("list", store="mysql://x").err


def test_the_beginning_of_an_id_must_mean_one_session(talked: str) -> None:
    with open_store(talked) as threads:
        threads.create("talk two")
        threads.create("another")
    assert "another" in good(sessions("show", "ano", store=talked))
    assert "matches 2 sessions: " in sessions("show", "tal", store=talked).err
    assert "Boats" in good(sessions("show", "talk", store=talked)), "a whole id is no beginning"


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_every_file_store_serves(tmp_path: Path, folder: Path, kind: str) -> None:
    url = f"jsonl:{tmp_path}/kept" if kind == "jsonl" else str(tmp_path / "kept.db")
    good(sessions("import", str(folder), store=url))
    assert "cli:direct" in good(sessions("list", store=url))
    assert "unchanged" in good(sessions("import", str(folder), store=url))
    assert "in effect" in good(sessions("show", "cli:direct", store=url))
