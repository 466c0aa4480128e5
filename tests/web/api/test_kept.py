"""What a person keeps, over the API: assistants, prompts, favourites, options of a thread, permissions."""

import json
from pathlib import Path
from typing import Any

import pytest

from everlong.agent import AgentConfig
from everlong.core import Message, Role
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedServer, Step, in_turn
from everlong.store import MemoryThreads
from everlong.web.state.agents import PLAIN
from tests.web.running import Page, an_app

API = "/everlong/api"
#: A server that was given no system text of its own.
PLAIN_SERVER = AgentConfig()


def bodies(server: ScriptedServer) -> list[dict[str, Any]]:
    """The bodies of the conversation; titles are asked for without a system text."""
    read = [json.loads(asked.body) for asked in server.requests]
    return [body for body in read if body["messages"][0]["role"] == "system"]


def system_of(asked: ReceivedRequest) -> str:
    return "\n".join(message.text for message in asked.messages if message.role is Role.SYSTEM)


# --- options of a thread --------------------------------------------------------------------------


def test_options_count_from_the_next_message_on_and_branches_inherit_them() -> None:
    with an_app(config=PLAIN_SERVER) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "Good morning")
        options = {"system": "Speak like a sailor.", "temperature": 0.2, "top_p": 0.5, "max_tokens": 300}
        told = page.do("PUT", f"{API}/threads/{thread}/options", options)
        assert told == {**options, "tools": None, "instructed": False}
        page.say(thread, "And now?")
        branch = page.do("POST", f"{API}/threads/{thread}/branch", {"order": 2})["id"]
        page.say(branch, "Here too?")
        first, second, third = bodies(server)
        assert (first["messages"][0]["content"], "temperature" in first) == (PLAIN["en"], False)
        for body in (second, third):
            assert body["messages"][0]["content"] == "Speak like a sailor."
            assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.2, 0.5, 300)
        assert [row["role"] for row in page.rows(thread)] == ["user", "assistant"] * 2
        page.do("PUT", f"{API}/threads/{thread}/options", {"temperature": None, "system": ""})
        page.say(thread, "As before?")
        last = bodies(server)[-1]
        assert (last["messages"][0]["content"], "temperature" in last, last["max_tokens"]) == (PLAIN["en"], False, 300)


@pytest.mark.parametrize(
    ("spoken", "chosen", "expected"), [("zh-CN,en", "", "zh"), ("de", "", "en"), ("en", "zh", "zh")]
)
def test_without_tools_the_instructions_are_neutral_and_in_the_language_of_the_person(
    spoken: str, chosen: str, expected: str
) -> None:
    with an_app(config=PLAIN_SERVER) as (app, server):
        page = app.page()
        page.headers["accept-language"] = spoken
        page.do("PUT", f"{API}/settings", {"language": chosen})
        page.say(page.thread(), "Hello")
        assert bodies(server)[0]["messages"][0]["content"] == PLAIN[expected]
        assert "tools" not in bodies(server)[0]


def test_tools_are_switched_for_one_thread_alone(tmp_path: Path) -> None:
    with an_app(config=AgentConfig(workspace=tmp_path)) as (app, server):
        page = app.page()
        with_tools, without = page.thread(), page.thread()
        page.do("PUT", f"{API}/threads/{with_tools}/options", {"tools": True})
        page.say(with_tools, "Look")
        page.say(without, "Look")
        page.do("PUT", f"{API}/settings", {"tools": True})
        page.do("PUT", f"{API}/threads/{without}/options", {"tools": False})
        page.say(without, "Again")
        one, two, three = bodies(server)
        assert ["tools" in body for body in (one, two, three)] == [True, False, False]
        assert "tools you have" in one["messages"][0]["content"]
        assert three["messages"][0]["content"] == PLAIN["en"]


def test_what_the_server_was_given_to_say_begins_the_thread_and_the_person_may_add_to_it() -> None:
    with an_app(config=AgentConfig(system="You work for the harbour.")) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "Hello")
        page.do("PUT", f"{API}/threads/{thread}/options", {"system": "Be brief."})
        assert page.get(f"{API}/threads/{thread}/options")["instructed"] is True
        page.say(thread, "Hello again")
        own = page.thread(options={"system": "Be brief."})
        page.say(own, "Hello")
        assert [system_of(asked) for asked in server.requests if system_of(asked)] == [
            "You work for the harbour.",
            "You work for the harbour.\nBe brief.",
            "Be brief.",
        ]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "too hot": ({"temperature": 2.1}, "temperature must be a number from 0 to 2"),
    "below zero": ({"temperature": -0.1}, "temperature must be a number from 0 to 2"),
    "in words": ({"temperature": "warm"}, "temperature must be a number from 0 to 2"),
    "yes": ({"temperature": True}, "temperature must be a number from 0 to 2"),
    "nothing to draw from": ({"top_p": 0}, "top_p must be more than 0"),
    "no answer": ({"max_tokens": 0}, "max_tokens must be 1 to 1,000,000 tokens"),
    "half a token": ({"max_tokens": 1.5}, "max_tokens must be a whole number of at least 0"),
    "a list": ({"system": ["a"]}, "system must be a string"),
    "a book": ({"system": "x" * 32_001}, "system can have at most 32,000 characters"),
    "tools in words": ({"tools": "on"}, "tools must be true or false"),
    "another": (
        {"colour": "red"},
        "there is no option 'colour'; the options are system, temperature, top_p, max_tokens, tools",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_make_no_sense_are_refused_in_one_line_and_change_nothing(name: str) -> None:
    body, line = WRONG[name]
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        before = page.do("PUT", f"{API}/threads/{thread}/options", {"temperature": 1})
        for method, path, said in (
            ("PUT", f"{API}/threads/{thread}/options", body),
            ("POST", f"{API}/threads", {"options": body}),
            ("POST", f"{API}/assistants", {"name": "A", "options": body}),
        ):
            status, told = page.ask(method, path, said)
            assert (status, told["error"]["message"]) == (400, line)
        assert page.get(f"{API}/threads/{thread}/options") == before


REFUSED = (
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."
)


def test_a_temperature_that_a_model_does_not_take_is_left_out_and_the_answer_comes() -> None:
    def script(asked: ReceivedRequest) -> Step:
        if asked.temperature is not None:
            return Refusal(400, json.dumps({"error": {"message": REFUSED, "code": "unsupported_value"}}))
        return Answer(text="It is six.")

    with an_app(script) as (app, server):
        page = app.page()
        thread = page.thread(options={"temperature": 0.2})
        events = page.say(thread, "How late is it?")
        assert [event["type"] for event in events if event["type"] == "failed"] == []
        assert page.rows(thread)[-1]["text"] == "It is six."
        assert [asked.temperature for asked in server.requests] == [0.2, None]


# --- assistants -----------------------------------------------------------------------------------


def test_an_assistant_is_kept_changed_chosen_and_removed() -> None:
    threads = MemoryThreads()
    with an_app(threads=threads, models=("small", "large"), config=PLAIN_SERVER) as (app, server):
        page = app.page()
        sailor = {
            "name": "Sailor",
            "icon": "⛵",
            "model": "main/large",
            "options": {"system": "Ahoy", "temperature": 1.5},
        }
        made = page.do("POST", f"{API}/assistants", sailor)
        thread = page.do("POST", f"{API}/threads", {"assistant": made["id"]})
        assert thread["model"] == "main/large"
        page.say(thread["id"], "Hello")
        assert (bodies(server)[0]["messages"][0]["content"], bodies(server)[0]["temperature"]) == ("Ahoy", 1.5)
        page.do("PUT", f"{API}/assistants/{made['id']}", {"options": {"temperature": None}})
    with an_app(threads=threads, config=PLAIN_SERVER) as (app, _):
        page = app.page()
        kept = page.get(f"{API}/kept")["assistants"]
        assert [(each["name"], each["icon"], each["options"]["temperature"]) for each in kept] == [
            ("Sailor", "⛵", None)
        ]
        page.do("DELETE", f"{API}/assistants/{made['id']}")
        assert page.get(f"{API}/kept")["assistants"] == []
        assert page.ask("POST", f"{API}/threads", {"assistant": made["id"]})[0] == 404
        status, told = page.ask("DELETE", f"{API}/assistants/{made['id']}")
        assert (status, told["error"]["kind"]) == (404, "gone")


def test_one_assistant_is_the_default_of_new_threads_unless_another_or_none_is_chosen() -> None:
    with an_app(config=PLAIN_SERVER) as (app, _):
        page = app.page()
        one = page.do("POST", f"{API}/assistants", {"name": "One", "options": {"system": "1"}, "default": True})
        two = page.do("POST", f"{API}/assistants", {"name": "Two", "options": {"system": "2"}, "default": True})
        assert [each["default"] for each in page.get(f"{API}/kept")["assistants"]] == [False, True]

        def system(**fields: Any) -> str:
            text: str = page.get(f"{API}/threads/{page.thread(**fields)}/options")["system"]
            return text

        assert (system(), system(assistant=one["id"]), system(assistant="")) == ("2", "1", "")
        assert system(options={"system": "3"}) == "3"
        page.do("PUT", f"{API}/assistants/{two['id']}", {"default": False})
        assert system() == ""


def test_an_assistant_whose_source_is_gone_speaks_with_the_usual_model() -> None:
    with an_app() as (app, _):
        page = app.page()
        page.do("POST", f"{API}/assistants", {"name": "Old", "model": "gone/model", "default": True})
        assert page.do("POST", f"{API}/threads")["model"] == "main/scripted"


@pytest.mark.parametrize(
    ("kind", "body", "line"),
    [
        ("assistants", {"name": " "}, "name is missing"),
        ("assistants", {"name": "x" * 61}, "name can have at most 60 characters"),
        ("assistants", {"name": "A", "icon": "<script>alert"}, "icon must be a single emoji or character"),
        ("assistants", {"name": "A", "options": []}, "options must be an object"),
        ("prompts", {"title": "", "text": "a"}, "title is missing"),
        ("prompts", {"title": "a", "text": ""}, "text is missing"),
        ("prompts", {"title": "a", "text": "x" * 20_001}, "text can have at most 20,000 characters"),
        ("prompts/import", {"prompts": []}, "the file contains no prompts"),
        ("prompts/import", {"prompts": [{"title": "a"}]}, "text is missing"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_one_line(kind: str, body: dict[str, Any], line: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        status, told = page.ask("POST", f"{API}/{kind}", body)
        assert (status, told["error"]["message"]) == (400, line)
        kept = page.get(f"{API}/kept")
        assert (kept["assistants"], kept["prompts"]) == ([], [])


# --- prompts --------------------------------------------------------------------------------------


def test_prompts_are_kept_changed_imported_once_and_removed() -> None:
    threads = MemoryThreads()
    with an_app(threads=threads) as (app, _):
        page = app.page()
        made = page.do("POST", f"{API}/prompts", {"title": "Translate", "text": "Into {language}: {text}"})
        page.do("PUT", f"{API}/prompts/{made['id']}", {"title": "To translate"})
        file = [{"title": "To translate", "text": "Into {language}: {text}"}, {"title": "New", "text": "…"}]
        assert page.do("POST", f"{API}/prompts/import", {"prompts": [*file, file[1]]}) == {"added": 1}
        assert page.do("POST", f"{API}/prompts/import", {"prompts": file}) == {"added": 0}
    with an_app(threads=threads) as (app, _):
        page = app.page()
        kept = page.get(f"{API}/kept")["prompts"]
        assert [prompt["title"] for prompt in kept] == ["To translate", "New"]
        assert len({prompt["id"] for prompt in kept}) == 2
        page.do("DELETE", f"{API}/prompts/{made['id']}")
        assert [prompt["title"] for prompt in page.get(f"{API}/kept")["prompts"]] == ["New"]


def test_the_lists_have_bounds() -> None:
    with an_app() as (app, _):
        page = app.page()
        many = [{"title": f"p{number}", "text": "t"} for number in range(500)]
        page.do("POST", f"{API}/prompts/import", {"prompts": many})
        status, told = page.ask("POST", f"{API}/prompts", {"title": "one more", "text": "t"})
        assert (status, told["error"]["message"]) == (400, "there can be at most 500 prompts; remove one first")


# --- favourites and recent models -----------------------------------------------------------------


def test_favourites_and_recent_models_are_kept() -> None:
    threads = MemoryThreads()
    names = tuple(f"m{number}" for number in range(9))
    with an_app(threads=threads, models=names) as (app, _):
        page = app.page()
        for name in ("m1", "m2", "m1"):
            page.do("PUT", f"{API}/favourites", {"model": f"main/{name}", "on": True})
        page.do("PUT", f"{API}/favourites", {"model": "main/m2", "on": False})
        thread = page.thread()
        for name in names:
            page.do("PATCH", f"{API}/threads/{thread}", {"model": f"main/{name}"})
    with an_app(threads=threads, models=names) as (app, _):
        kept = app.page().get(f"{API}/kept")
        assert kept["favourites"] == ["main/m1"]
        assert kept["recent"] == [f"main/m{number}" for number in (8, 7, 6, 5, 4, 3)]
        assert app.page().get(f"{API}/state")["default_model"] == "main/m8"


def test_the_model_chosen_last_by_an_earlier_version_is_read() -> None:
    threads = MemoryThreads()
    threads.keep_fact("app", "model", '"main/two"')
    with an_app(threads=threads, models=("one", "two")) as (app, _):
        assert app.page().get(f"{API}/state")["default_model"] == "main/two"


def test_models_tell_their_price_where_it_is_known() -> None:
    with an_app(models=("gpt-4o", "nobody-knows-me")) as (app, _):
        known, unknown = app.page().get(f"{API}/state")["models"]
        assert known["input_price"] > 0
        assert known["output_price"] > known["input_price"]
        assert (unknown["input_price"], unknown["output_price"]) == (None, None)


# --- permissions ----------------------------------------------------------------------------------


def call(name: str, **arguments: Any) -> Answer:
    return Answer(calls=((name, json.dumps(arguments)),))


def answered(page: Page, thread: str, answer: str) -> None:
    """Say something, and answer the question that comes."""
    with page.listen(thread) as stream:
        page.do("POST", f"{API}/threads/{thread}/turn", {"text": "Go"})
        asked = stream.until("ask")[-1]
        page.do("POST", f"{API}/threads/{thread}/answer", {"id": asked["id"], "answer": answer})
        stream.until("ended")


def test_what_was_allowed_is_seen_and_can_be_revoked(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own" / "permissions.toml"
    work.mkdir()
    hi, ho, write = (
        call("shell", command="echo hi"),
        call("shell", command="echo ho"),
        call("write_file", path="a", content="1"),
    )
    end = Answer(text="Done.")
    script = in_turn([hi, end, ho, end, write, end, hi, end])
    config = AgentConfig(workspace=work, remembered=own)
    with an_app(script, config=config) as (app, _):
        page = app.page()
        page.do("PUT", f"{API}/settings", {"tools": True})
        thread = page.thread("Work")
        answered(page, thread, "always")
        answered(page, thread, "thread")
        answered(page, thread, "once")
        told = page.get(f"{API}/permissions")
        assert told == {
            "folder": str(work),
            "always": ["shell:echo hi"],
            "threads": [{"thread": thread, "title": "Work", "grants": ["command", f"path:{work / 'a'}"]}],
        }
        page.do("POST", f"{API}/permissions/revoke", {"thread": thread, "grant": f"path:{work / 'a'}"})
        page.do("POST", f"{API}/permissions/revoke", {"thread": thread, "grant": "command"})
        told = page.do("POST", f"{API}/permissions/revoke", {"pattern": "shell:echo hi"})
        assert (told["always"], told["threads"]) == ([], [])
        assert "echo hi" not in own.read_text()
        answered(page, thread, "no")  # it is asked again
        assert page.ask("POST", f"{API}/permissions/revoke", {"thread": thread, "grant": "command"})[0] == 404


def test_a_rule_that_a_person_wrote_is_left_to_the_person(tmp_path: Path) -> None:
    own = tmp_path / "permissions.toml"
    own.write_text('allow = ["shell:git status"]\n')
    with an_app(config=AgentConfig(workspace=tmp_path, remembered=own)) as (app, _):
        page = app.page()
        assert page.get(f"{API}/permissions")["always"] == ["shell:git status"]
        status, told = page.ask("POST", f"{API}/permissions/revoke", {"pattern": "shell:git status"})
        assert (status, str(own) in told["error"]["message"]) == (400, True)
        assert own.read_text() == 'allow = ["shell:git status"]\n'


def test_messages_of_a_thread_hold_no_instructions_that_may_change() -> None:
    with an_app(config=PLAIN_SERVER) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "Hello")
        kept = [row.entry for row in app.state.threads.read(thread)]
        assert [entry.role for entry in kept if isinstance(entry, Message)] == [Role.USER, Role.ASSISTANT]


def test_the_diff_of_a_change_is_told_as_long_as_both_sides_are_known(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("one\n")
    steps = [call("write_file", path="notes.txt", content=text) for text in ("two\n", "three\n")]
    with an_app(in_turn([*steps, Answer(text="Done.")]), folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", f"{API}/settings", {"tools": True})
        thread = page.thread()
        page.say(thread, "Please write notes.txt")  # it is named, so nobody is asked
        newest, oldest = page.get(f"{API}/threads/{thread}/changes")

        def diff(change: dict[str, Any]) -> Any:
            return page.get(f"{API}/threads/{thread}/changes/{change['id']}/diff")

        assert diff(oldest) == {"diff": "@@ -1 +1 @@\n-one\n+two", "cut": False}
        assert diff(newest) == {"diff": "@@ -1 +1 @@\n-two\n+three", "cut": False}
        file.write_text("somebody else's\n")
        assert diff(newest) == {"diff": None, "cut": False}
        assert diff(oldest)["diff"] is not None
        assert diff({"id": "nobody"}) == {"diff": None, "cut": False}


def test_another_model_answers_again_and_a_model_that_is_gone_changes_nothing() -> None:
    with an_app(lambda asked: Answer(text=f"I am {asked.model}."), models=("one", "two")) as (app, _):
        page = app.page()
        thread = page.thread(model="main/one")
        page.say(thread, "Who are you?")
        status, _told = page.ask("POST", f"{API}/threads/{thread}/regenerate", {"model": "gone/two"})
        assert (status, page.rows(thread)[-1]["versions"]) == (409, None)
        version = page.do("POST", f"{API}/threads/{thread}/regenerate", {"model": "main/two"})
        assert version["model"] == "main/two"
        with page.listen(version["id"]) as stream:
            stream.wait(lambda event: event["type"] == "running" and not event["running"])
        rows = page.rows(version["id"])
        assert (rows[-1]["text"], rows[-1]["model"]) == ("I am two.", "two")
        assert page.get(f"{API}/threads/{thread}")["model"] == "main/one"
