"""The endpoints of the app as a whole."""

import json
from pathlib import Path

from everlong.agent.tools.sandbox import find_sandbox
from everlong.llm import Answer, in_turn
from tests.web.running import an_app


def test_the_page_is_told_which_sandbox_commands_run_in(tmp_path: Path) -> None:
    with an_app(folder=tmp_path) as (app, _):
        assert app.page().get("/everlong/api/state")["sandbox"] == {"kind": find_sandbox().kind, "network": False}


def test_commands_of_the_app_run_in_it(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    work.mkdir()
    call = Answer(calls=(("shell", json.dumps({"command": f"touch {outside}"})),))
    with an_app(in_turn([call, Answer(text="ok")]), folder=work) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "go"})
            asked = stream.until("ask")[-1]
            page.do("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked["id"], "answer": "once"})
            stream.until("ended")
    assert outside.exists() is not bool(find_sandbox().kind)
