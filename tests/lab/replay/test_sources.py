"""Conversations to replay: found on disk, told whole, with what their files say they cost."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject, Role
from everlong.engine import cost_of
from everlong.errors import InputError
from everlong.lab.replay.results import Recorded
from everlong.lab.replay.sessions import Session, moments_of
from everlong.lab.replay.sources import recorded_of, sessions_at, sessions_in
from everlong.lab.strategies.strategy import counter
from everlong.windows import window
from everlong.wire import Usage
from tests.lab.folders import step
from tests.wire.sessions.reading import outline
from tests.wire.sessions.samples import (
    CHATBOX,
    CLAUDE,
    CLAUDE_COMPACTED,
    CODEX,
    CODEX_OLD,
    NANOBOT,
    NANOBOT_NEWER,
    PI_1,
    PI_3,
    claude_line,
    claude_reply,
    claude_user,
    codex_line,
    codex_message,
    pi_said,
    pi_user,
)

SONNET = "claude-sonnet-4-5"
CHAT: list[JsonObject] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def lines(records: list[JsonObject]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def put(folder: Path, name: str, records: list[JsonObject]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = lines(records)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(records: list[JsonObject]) -> list[Session]:
    return sessions_in(lines(records), "talk.jsonl", lambda _: None)


def at(*paths: Path | str, home: Path | None = None) -> tuple[list[Session], list[str]]:
    told: list[str] = []
    return sessions_at([str(path) for path in paths], told.append, home=home), told


# --- what is found -------------------------------------------------------------------------------

FOLDERS = {
    "claude-code": (".claude/projects/-w/0a1b.jsonl", CLAUDE),
    "codex": (".codex/sessions/2026/03/01/rollout-2026-03-01.jsonl", CODEX),
    "pi": (".pi/agent/sessions/--w--/2026_s.jsonl", PI_3),
    "nanobot": (".nanobot/sessions/0123/Y2xpOmRpcmVjdA.jsonl", NANOBOT),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_program_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    file, records = FOLDERS[name]
    put(tmp_path, file, records)
    sessions, told = at(name, home=tmp_path)
    assert [(one.facts.id, one.facts.source) for one in sessions] == [(Path(file).stem, name)]
    assert not told


def test_a_folder_is_walked_to_its_end_in_the_order_of_its_names(tmp_path: Path) -> None:
    put(tmp_path, "b/c/two.jsonl.gz", NANOBOT)
    put(tmp_path, "a/one.jsonl", PI_1)
    (tmp_path / "three.json").write_text(json.dumps({"model": "gpt-4o", "messages": CHAT}))
    sessions, _ = at(tmp_path)
    assert [(one.facts.id, one.facts.source) for one in sessions] == [
        ("one", "pi"),
        ("two", "nanobot"),
        ("three", "openai-chat"),
    ]
    assert sessions[2].models == ("gpt-4o",)


def test_what_is_no_conversation_is_told_in_one_line(tmp_path: Path) -> None:
    put(tmp_path, "talk.jsonl", NANOBOT)
    put(tmp_path, "asked.jsonl", NANOBOT[:2])
    for number in range(7):
        (tmp_path / f"settings{number}.json").write_text('{"theme": "dark"}')
    (tmp_path / "notes.md").write_text("# no suffix of ours")
    sessions, told = at(tmp_path)
    assert [one.facts.id for one in sessions] == ["talk"]
    assert told == [
        "7 files are not conversations: "
        "settings0.json, settings1.json, settings2.json, settings3.json, settings4.json and 2 more",
        "1 file skipped: no assistant messages (asked.jsonl)",
    ]


def test_lines_that_cannot_be_read_are_told_once_a_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(lines(NANOBOT) + b'{"role": "user", "con\n{"role\n')
    (session,), told = at(path)
    assert session.facts.messages == 4
    assert len(told) == 1
    assert told[0].startswith(f"{path}: line 6: ")
    assert told[0].endswith("and 1 more")


REFUSED = {
    "talk.json": r"talk\.json: it contains no JSON",
    "gone.jsonl": r"gone\.jsonl: no such file or folder; .*pi, claude-code, codex, nanobot",
    "empty": r"nothing to replay in .*empty; looked for sessions of pi, Claude Code, .* or GitHub Copilot CLI",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_was_named_and_cannot_be_used_is_one_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=REFUSED[name]):
        at(tmp_path / name)


def test_a_program_that_was_never_used_here_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"codex: no sessions in .*\.codex"):
        at("codex", home=tmp_path)


def test_a_file_named_twice_is_one_session_and_files_of_one_name_have_each_their_own(tmp_path: Path) -> None:
    paths = [put(tmp_path, f"{folder}/cli_direct.jsonl", NANOBOT) for folder in ("a", "b")]
    again = put(tmp_path, "c/b/cli_direct.jsonl", NANOBOT)
    sessions, _ = at(tmp_path, *paths, again)
    assert [one.facts.id for one in sessions] == ["cli_direct", "b/cli_direct", "b/cli_direct~2"]


def test_a_file_of_many_conversations_gives_each_under_its_own_id(tmp_path: Path) -> None:
    rows: list[JsonObject] = [{"id": "first", "messages": list[Json](CHAT)}, {"messages": list[Json](CHAT)}]
    sessions, _ = at(put(tmp_path, "set.jsonl", rows))
    assert [one.facts.id for one in sessions] == ["first", "set-1"]


# --- what is said --------------------------------------------------------------------------------

WHOLE = {
    "Claude Code": (CLAUDE_COMPACTED, ["long work", "done with it", "go on", "going on"]),
    "pi": (PI_1, ["old question", "old answer", "new question", "Let me look.", "", "It says hello."]),
    "nanobot": (NANOBOT_NEWER, ["look at this\n[image: media/cat.png]", "", "", "a cat", "and a dog?"]),
}


@pytest.mark.parametrize(("records", "texts"), WHOLE.values(), ids=WHOLE)
def test_a_compacted_session_is_whole_and_without_its_summary(records: list[JsonObject], texts: list[str]) -> None:
    (session,) = read(records)
    assert [message.text for message in session.messages] == texts
    assert session.facts.messages == len(texts)


def test_what_codex_put_in_place_of_the_past_is_left_out() -> None:
    (session,) = read(CODEX)
    words = [message.text for message in session.messages]
    assert words.count("read a.py") == 1
    assert "We read it." not in words
    assert words[0] == "You code."
    assert words[-1] == "and b.py"


def test_a_chatbox_session_is_whole_too() -> None:
    (session,) = sessions_in(json.dumps(CHATBOX).encode(), "box.json", lambda _: None)
    words = [message.text for message in session.messages]
    assert words[-1] == "and now?"
    assert "We found it and saw a cat." not in words


SUMMARY_FIRST = {
    "Claude Code": [claude_user("a", None, "what happened", isCompactSummary=True), *CLAUDE_COMPACTED[:2]],
    "Codex": [*CODEX[:1], *CODEX[-2:], codex_line("response_item", codex_message("assistant", "done"))],
    "nanobot": [
        {"_type": "metadata", "key": "k", "metadata": {"_last_summary": {"text": "what happened"}}},
        *NANOBOT[1:],
    ],
}


@pytest.mark.parametrize("records", SUMMARY_FIRST.values(), ids=SUMMARY_FIRST)
def test_a_summary_of_what_the_file_does_not_hold_stays(records: list[JsonObject]) -> None:
    (session,) = read(records)
    said = "\n".join(message.text for message in session.messages if message.role is Role.USER)
    assert "what happened" in said or "We read it." in said


@pytest.mark.parametrize("records", [CLAUDE, CODEX, CODEX_OLD, PI_1, PI_3, NANOBOT], ids=range(6))
def test_every_result_is_a_message_and_every_message_is_counted(records: list[JsonObject]) -> None:
    for session in read(records):
        assert all(len(message.results) == (message.role is Role.TOOL) for message in session.messages)
        assert session.facts.tokens == sum(map(counter().message, session.messages)) > 0
        assert len(session.times) in (0, len(session.messages))


def test_probes_are_made_from_the_session() -> None:
    far = "a quiet line of output that says nothing at all\n" * 400
    history = (*step(1, "ticket HB72QX"), *step(2, far), *step(3, "done", '{"command": "close HB72QX"}'))
    rows: list[JsonObject] = []
    for message in history:
        calls: list[Json] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
        if calls:
            rows.append({"role": "assistant", "content": None, "tool_calls": calls})
        rows += [{"role": "tool", "tool_call_id": one.call, "content": one.text} for one in message.results]
    (session,) = read([NANOBOT[0], *rows])
    assert [(case.at, case.wanted) for case in session.cases] == [(4, ("HB72QX",))]


# --- sub-agents ----------------------------------------------------------------------------------


def side(name: str, parent: str | None, text: str, reply: str = "", **fields: Json) -> JsonObject:
    """A line of a sub-agent: the task, or with `reply` an answer."""
    if not reply:
        return claude_user(name, parent, text, isSidechain=True, **fields)
    line = claude_reply(name, parent or "", reply, {"type": "text", "text": text})
    return line | {"isSidechain": True} | fields


def test_sub_agents_in_one_file_are_conversations_of_their_own() -> None:
    asked = [side("s1", None, "task one"), side("r1", None, "task two")]
    answered = [side("s2", "s1", "one done", "n1"), side("r2", "r1", "two done", "n2"), side("s3", "s2", "thanks")]
    main, one, two = read([*CLAUDE_COMPACTED[:2], *asked, *answered])
    assert [message.text for message in main.messages] == ["long work", "done with it"]
    assert outline(one.messages) == ["user: task one", "assistant: one done", "user: thanks"]
    assert outline(two.messages) == ["user: task two", "assistant: two done"]
    assert [session.facts.id for session in (main, one, two)] == ["talk", "talk/agent-1", "talk/agent-2"]
    assert [session.facts.recorded[0].requests for session in (main, one, two)] == [1, 1, 1]


def test_the_file_of_a_sub_agent_is_one_session_under_its_name(tmp_path: Path) -> None:
    records = [side("s1", None, "task", agentId="7f"), side("s2", "s1", "done", "n1", agentId="7f")]
    (session,), told = at(put(tmp_path, "agent-7f.jsonl", records))
    assert (session.facts.id, session.facts.recorded[0].requests) == ("agent-7f", 1)
    assert outline(session.messages) == ["user: task", "assistant: done"]
    assert not told


# --- when ----------------------------------------------------------------------------------------


def test_times_stand_beside_their_messages() -> None:
    (session,) = read(NANOBOT)
    first = session.times[0]
    assert first is not None
    assert [None if time is None else round(time - first, 3) for time in session.times] == [0, 0.877, 1.877, 2.877]
    assert session.facts.seconds == pytest.approx(2.876544)
    assert (read(CODEX_OLD)[0].times, read(CODEX_OLD)[0].facts.seconds) == ((), None)


STAMPS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.datetimes().map(lambda time: time.isoformat()),
    st.sampled_from(
        ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-01-01T00:00:00.000Z", "2026-03-01"]
    ),
)


@given(st.lists(STAMPS, min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_a_time_of_any_kind_never_breaks_a_session(stamps: list[Json]) -> None:
    said = [
        {"role": "assistant" if number % 2 else "user", "content": str(number), "timestamp": stamp}
        for number, stamp in enumerate(stamps)
    ]
    (session,) = read([NANOBOT[0], *said])
    assert len(session.messages) == len(stamps)
    assert len(session.times) in (0, len(stamps))
    assert all(time is None or time > 0 for time in session.times)
    assert session.facts.seconds is None or session.facts.seconds >= 0
    moments = moments_of(session, "recorded", 300.0)
    assert sorted(moments) == list(moments)


# --- what it cost --------------------------------------------------------------------------------


def piece(number: int, reply: str, *, output: int, model: str = SONNET, **fields: object) -> JsonObject:
    """A line of a Claude Code reply with the usage as it stood."""
    usage: JsonObject = {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3_000}
    body: JsonObject = {"id": reply, "role": "assistant", "model": model, "usage": usage | {"output_tokens": output}}
    content: list[Json] = [{"type": "text", "text": str(number)}]
    return claude_line(str(number), None, "assistant", body | {"content": content}, requestId=f"req-{reply}", **fields)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 500)), min_size=1, max_size=12), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_pieces_of_an_answer_in_any_order_are_one_request(pieces: list[tuple[int, int]], chance: Random) -> None:
    records = [piece(at, f"m{reply}", output=output) for at, (reply, output) in enumerate(pieces)]
    shuffled = list(records)
    chance.shuffle(shuffled)
    (one,) = recorded_of("claude-code", records)
    (other,) = recorded_of("claude-code", shuffled)
    most = {reply: max(output for name, output in pieces if name == reply) for reply, _ in pieces}
    assert (one.requests, one.output) == (len(most), sum(most.values()))
    assert (one.prompt, one.read, one.written) == tuple(len(most) * part for part in (3_210, 3_000, 200))
    assert one.dollars == pytest.approx(other.dollars)
    assert one.dollars == pytest.approx(
        sum(
            cost_of(Usage(prompt=3_210, cached=3_000, cache_written=200, output=output), window(SONNET).prices) or 0
            for output in most.values()
        )
    )


def test_each_model_has_its_own_figures_the_most_used_first() -> None:
    records = [claude_user("a", None, "go")]
    records += [piece(1, "m1", output=5, model="made-up-model"), piece(2, "m2", output=5), piece(3, "m3", output=5)]
    records += [piece(4, "m4", output=0, model="<synthetic>")]
    (session,) = read(records)
    assert session.models == (SONNET, "made-up-model")
    assert [(one.model, one.requests) for one in session.facts.recorded] == [(SONNET, 2), ("made-up-model", 1)]
    assert session.facts.recorded[1].dollars is None


def test_what_is_written_for_an_hour_costs_twice_the_input() -> None:
    hour: JsonObject = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1_000_000}
    usage: JsonObject = {"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "cache_creation": hour}
    record: JsonObject = {"message": {"id": "m", "model": SONNET, "usage": usage}}
    (one,) = recorded_of("claude-code", [record])
    assert one.dollars == pytest.approx(2 * (window(SONNET).prices.input or 0))


def test_pi_tells_its_own_cost_also_of_turns_that_were_taken_back() -> None:
    (session,) = read(PI_3)
    assert session.facts.recorded == (
        Recorded(model="model-two", requests=2, prompt=2, read=0, written=0, output=4, dollars=0.2),
        Recorded(model="model-one", requests=1, prompt=1, read=0, written=0, output=2, dollars=0.1),
    )
    assert session.models == ("model-two", "model-one")


def test_where_pi_tells_no_cost_the_price_table_does() -> None:
    usage: JsonObject = {"input": 100, "output": 10, "cacheRead": 900, "cacheWrite": 50, "cost": {"total": 0}}
    said = pi_said("yes")
    body = said["message"]
    assert isinstance(body, dict)
    spoken: JsonObject = body | {"provider": "anthropic", "model": SONNET, "usage": usage}
    (session,) = read([PI_1[0], pi_user("go"), said | {"message": spoken}])
    (one,) = session.facts.recorded
    assert (one.prompt, one.read, one.written, one.output) == (1_050, 900, 50, 10)
    assert one.dollars == pytest.approx(
        cost_of(Usage(prompt=1_050, cached=900, cache_written=50, output=10), window(SONNET).prices)
    )


def tokens(prompt: int, cached: int, output: int) -> JsonObject:
    shown: JsonObject = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output}
    return shown | {"reasoning_output_tokens": 0, "total_tokens": prompt + output}


def counted(total: JsonObject | None, last: JsonObject | None) -> JsonObject:
    info: JsonObject = {"total_token_usage": total, "last_token_usage": last}
    return codex_line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})


def test_codex_repeats_are_one_request_and_models_are_told_apart() -> None:
    first, second = tokens(1_000, 0, 50), tokens(1_200, 1_000, 30)
    both = tokens(2_200, 1_000, 80)
    records = [
        codex_line("turn_context", {"model": "gpt-5"}),
        codex_line("event_msg", {"type": "token_count", "info": None}),
        counted(first, first),
        counted(first, first),
        codex_line("turn_context", {"model": "gpt-5-mini"}),
        counted(both, second),
        counted(both, tokens(0, 0, 0)),  # after a compaction only an estimate is told anew
    ]
    found = {one.model: one for one in recorded_of("codex", records)}
    assert {model: (one.requests, one.prompt, one.read, one.output) for model, one in found.items()} == {
        "gpt-5": (1, 1_000, 0, 50),
        "gpt-5-mini": (1, 1_200, 1_000, 30),
    }
    assert found["gpt-5"].dollars == pytest.approx(cost_of(Usage(prompt=1_000, output=50), window("gpt-5").prices))


@given(st.lists(st.tuples(*[st.integers(1, 5_000)] * 2), min_size=1, max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_codex_sums_say_the_same_as_their_parts(asked: list[tuple[int, int]], parts: bool) -> None:
    prompt = output = 0
    records = [codex_line("turn_context", {"model": "gpt-5"})]
    for one, other in asked:
        prompt, output = prompt + one, output + other
        event = counted(tokens(prompt, 0, output), tokens(one, 0, other) if parts else None)
        records += [event, event]
    (found,) = recorded_of("codex", records)
    assert (found.requests, found.prompt, found.output) == (len(asked), prompt, output)


def test_nanobot_and_plain_lists_say_nothing_of_cost() -> None:
    assert read(NANOBOT)[0].facts.recorded == ()
    assert read(CHAT)[0].facts.recorded == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["usage", "id", "model"]), inner),
    max_leaves=6,
)
FIELDS = ["type", "message", "payload", "usage", "requestId", "costUSD", "input_tokens", "cacheRead", "cost", "info"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5), max_size=4))
@settings(max_examples=80, deadline=None)
def test_records_of_any_shape_never_break_the_count(records: list[JsonObject]) -> None:
    for fmt in ("claude-code", "codex", "pi"):
        found = recorded_of(fmt, records)
        assert all(one.requests > 0 and min(one.prompt, one.read, one.written, one.output) >= 0 for one in found)
