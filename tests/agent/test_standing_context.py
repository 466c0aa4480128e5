"""Standing context: read from its sources for every request, in its place, counted, never kept."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from everlong.agent.standing_context import (
    NO_STANDING_CONTEXT,
    StandingContext,
    file_source,
    skills_source,
    workspace_standing,
)
from everlong.agent.tools.todo import Todos
from everlong.core import History, Role
from everlong.engine import Call, Engine
from everlong.engine.requests.placement import with_beside, without_tail
from everlong.errors import BudgetImpossible
from everlong.llm import Answer, HttpModel, ReceivedRequest, ScriptedModel, ScriptedServer, Window
from everlong.store import MemoryThreads, open_store
from everlong.tokens import Counter
from everlong.wire import valid
from tests.agent.acting import CONFIG, Act, Ran, calls_then, ended, run
from tests.core.build import assistant, calls, result, system, user
from tests.engine.talking import FORMATS, over_http

RULES, STATE = system("## AGENTS.md\nBe kind."), user("[state] 1 of 2 done")
CALL = Call(model="gpt-4o", standing=(RULES,), tail=(STATE,))
HEAD, ASKED, DONE = system("You help."), user("Do it"), assistant("Done")

PLACES: dict[str, tuple[History, History]] = {
    "a new turn": ((HEAD, ASKED, DONE, user("More")), (HEAD, RULES, ASKED, DONE, STATE, user("More"))),
    "a tool loop": (
        (HEAD, ASKED, calls("a"), result("a")),
        (HEAD, RULES, ASKED, calls("a"), result("a"), STATE),
    ),
    "no system text": ((ASKED,), (RULES, STATE, ASKED)),
    "several system texts": ((HEAD, HEAD, ASKED), (HEAD, HEAD, RULES, STATE, ASKED)),
}


@pytest.mark.parametrize("fmt", ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("name", PLACES)
def test_what_is_beside_a_thread_has_its_place_and_every_provider_takes_it(name: str, fmt: str) -> None:
    messages, expected = PLACES[name]
    placed = with_beside(messages, CALL)
    assert placed == expected
    assert valid(fmt, placed)
    assert with_beside(messages, Call(model="gpt-4o")) == messages
    assert without_tail(placed, CALL) == tuple(message for message in expected if message != STATE)


def test_it_is_counted_and_nothing_of_it_is_kept() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [HEAD, ASKED])
    engine = Engine(threads).blocking
    bare, full = (engine.prepare("t", call) for call in (Call(model="gpt-4o"), CALL))
    beside = Counter("gpt-4o").messages((RULES, STATE))
    assert full.tokens - bare.tokens >= beside
    assert bare.budget.available - full.budget.available == beside
    assert len(list(threads.read("t"))) == 2


def test_standing_context_that_leaves_no_room_is_named() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [ASKED])
    call = replace(CALL, standing=(system("rule " * 9_000),), served=8_000)
    with pytest.raises(BudgetImpossible, match="standing context"):
        Engine(threads).blocking.prepare("t", call)


def test_a_cut_fits_with_what_is_beside_it_and_leaves_it_whole() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [HEAD])
    for at in range(60):
        threads.append("t", [user(f"Question {at}"), assistant(f"Answer {at}: " + "word " * 200)])
    threads.append("t", [ASKED])
    call = replace(CALL, standing=(system("rule " * 1_000),), served=8_000, max_tokens=500)
    prepared = Engine(threads).blocking.prepare("t", call)
    sent = prepared.request.messages
    assert Counter("gpt-4o").messages(sent) + 500 <= 8_000
    assert sent[:2] == (HEAD, call.standing[0])
    assert sent[-2:] == (STATE, ASKED)


def test_the_prefix_is_stable_and_the_tail_is_never_inside_it() -> None:
    counted = iter(range(1_000))
    standing = StandingContext((("Rules", lambda _: "Be kind."),), (("Todo", lambda _: f"{next(counted)} done"),))
    model = ScriptedModel(calls_then([[("read", f'{{"n":{n}}}')] for n in range(6)]))
    run(Act(model, [Ran().tool()], standing=standing).say("Go"))
    bodies = [tuple(m for m in asked.messages if "done" not in m.text) for asked in model.requests]
    for one, two in pairwise(bodies):
        assert two[: len(one)] == one
    assert len({asked.messages[1] for asked in model.requests}) == 1
    tails = [next(m.text for m in asked.messages if "## Todo" in m.text) for asked in model.requests]
    assert len(set(tails)) == len(tails) == 7
    assert all("## Todo" in asked.messages[-1].text for asked in model.requests[1:])


def test_usage_still_anchors_the_count() -> None:
    """What is beside a thread does not keep the engine from learning the true size of what it sent."""
    standing = StandingContext((("Rules", lambda _: "Be kind."),), (("Todo", lambda _: "one"),))
    act = Act(ScriptedModel(lambda _: Answer(text="ok")), standing=standing)
    run(act.say("Hello"))
    state = act.engine.blocking.context.states.get("t")
    assert state is not None
    assert state.anchor is not None


@pytest.mark.parametrize("fmt", FORMATS)
def test_over_http_in_every_format_with_tools_a_limit_and_a_tail(fmt: str) -> None:
    ran = Ran()

    async def turns(model: HttpModel) -> None:
        standing = StandingContext((("Rules", lambda _: "Be kind."),), (("Todo", lambda _: f"{len(ran.calls)} done"),))
        act = Act(model, [ran.tool()], replace(CONFIG, most_steps=2), standing)
        assert ended(await act.say("Go")).reason == "most steps"
        act.sound()

    def script(asked: ReceivedRequest) -> Answer:
        return Answer(text="So far.") if asked.number == 2 else Answer(calls=(("read", f'{{"n": {asked.number}}}'),))

    with ScriptedServer(script) as server:
        over_http(server, turns, fmt)
    assert len(ran.calls) == 2
    for number, asked in enumerate(server.requests):
        whole = "\n".join(message.text for message in asked.messages)
        assert [whole.count(text) for text in ("Be kind.", f"{number} done", "Work carefully.")] == [1, 1, 1]
        assert valid(fmt, asked.messages)
    signs = (b'"none"', b'"tools": []')  # Ollama has no word for it
    forbidden = [any(sign in asked.body.lower() for sign in signs) for asked in server.requests]
    assert forbidden == [False, False, True]
    assert "all of its 2 steps" in server.requests[-1].messages[-1].text


# --- Sources ----------------------------------------------------------------------------------------


def test_files_are_read_anew_each_time_and_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    standing = workspace_standing(tmp_path, todo=lambda thread: f"- [ ] {thread}")
    assert standing.now("t")[0] == ()
    (tmp_path / "AGENTS.md").write_text("Use tabs.", "utf-8")
    first = standing.now("t")
    assert first == standing.now("t")
    assert first[0][0].text == "## AGENTS.md\nUse tabs."
    assert first[0][0].role is Role.SYSTEM
    assert first[1][0].text.endswith("## Todo\n- [ ] t")
    (tmp_path / "AGENTS.md").write_text("Use spaces.", "utf-8")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text("记住：用户喜欢茶。", "utf-8")
    assert standing.now("t")[0][0].text == "## AGENTS.md\nUse spaces.\n\n## memory/MEMORY.md\n记住：用户喜欢茶。"


def test_skills_are_listed_by_name_and_description_and_their_bodies_are_not_sent(tmp_path: Path) -> None:
    for name, text in {
        "pdf": "---\nname: pdf-forms\ndescription: Fill in\n  PDF forms.\nlicense: any\n---\nBODY",
        "plain": "BODY without a front",
        "quoted": '---\nname: "quoted"\ndescription: "Says: hello"\n---\nBODY',
    }.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(text, "utf-8")
    listed = skills_source(tmp_path, "skills")("t").splitlines()[1:]
    assert listed == [
        "- pdf-forms: Fill in PDF forms. (skills/pdf/SKILL.md)",
        "- plain: no description (skills/plain/SKILL.md)",
        "- quoted: Says: hello (skills/quoted/SKILL.md)",
    ]


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "workspace"
    (inside / "skills" / "x").mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("SECRET", "utf-8")
    (inside / "AGENTS.md").symlink_to(secret)
    (inside / "skills" / "x" / "SKILL.md").symlink_to(secret)
    (inside / "loop").symlink_to(inside / "loop")
    assert workspace_standing(inside).now("t") == ((), ())
    assert file_source(inside, "loop")("t") == ""
    assert file_source(inside, "../secret")("t") == ""
    assert NO_STANDING_CONTEXT.now("t") == ((), ())


def test_a_file_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("é" * 40_000, "utf-8")
    text = file_source(tmp_path, "AGENTS.md")("t")
    assert text.startswith("é" * 1_000)
    assert text.endswith("AGENTS.md continues for 16,000 more bytes; read the file]")


def test_a_changed_source_reaches_the_very_next_request(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("one", "utf-8")
    model = ScriptedModel(window=Window(told=False))
    act = Act(model, standing=workspace_standing(tmp_path))
    run(act.say("a"))
    (tmp_path / "AGENTS.md").write_text("two", "utf-8")
    run(act.say("b"))
    assert [asked.messages[1].text for asked in model.requests] == ["## AGENTS.md\none", "## AGENTS.md\ntwo"]


def test_a_todo_list_belongs_to_its_thread_stands_at_the_tail_and_survives_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    made = '{"items": [{"text": "read the code", "state": "done"}, {"text": "fix it"}]}'
    with open_store(store) as threads:
        todos = Todos(threads)
        model = ScriptedModel(calls_then([[("todo", made)]]))
        act = Act(model, [todos.tool], standing=StandingContext((), (("Todo", todos.source),)), threads=threads)
        run(act.say("Plan it"))
        assert model.requests[-1].messages[-1].text.endswith("## Todo\n[x] read the code\n[ ] fix it")
        assert todos.source("another") == ""
    with open_store(store) as threads:
        assert Todos(threads).source("t") == "[x] read the code\n[ ] fix it"
        threads.keep_fact("todo", "t", "broken")
        assert Todos(threads).source("t") == ""
