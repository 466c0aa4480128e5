"""An agent's own list of tasks: which one is being done."""

import json

import pytest

from everlong.core import Message
from everlong.relevance.agenda import running_task
from tests.core.build import calls, result, user


def listed(name: str, **arguments: object) -> Message:
    return calls("1", name=name, arguments=json.dumps(arguments))


def items(text: str, state: str) -> list[dict[str, str]]:
    return [
        {text: "Read the code", state: "completed"},
        {text: "Fix app.py", state: "in_progress"},
        {text: "Write tests", state: "pending"},
    ]


LISTS = {
    "a list of contents": listed("TodoWrite", todos=items("content", "status")),
    "a plan of steps": listed("update_plan", explanation="go on", plan=items("step", "status")),
    "titles": listed("task_tracker", command="plan", task_list=items("title", "state")),
    "descriptions": listed("write_todos", todos=items("description", "status")),
}


@pytest.mark.parametrize("case", LISTS)
def test_the_task_in_progress_of_a_list(case: str) -> None:
    assert running_task([user("go"), LISTS[case], result("1", "ok")]) == "Fix app.py"


def test_the_newest_list_counts() -> None:
    done = [{"content": "Fix app.py", "status": "completed"}, {"content": "Write tests", "status": "pending"}]
    assert running_task([LISTS["a list of contents"], listed("TodoWrite", todos=done)]) == "Write tests"


def test_tasks_that_are_added_and_changed_one_by_one() -> None:
    history = [
        listed("TaskCreate", subject="Fix app.py", description="The handler in src/app.py fails"),
        listed("TaskCreate", subject="Write tests"),
    ]
    assert running_task(history) == "Fix app.py\nThe handler in src/app.py fails"
    history.append(listed("TaskUpdate", taskId="1", status="completed"))
    history.append(listed("TaskUpdate", taskId="2", status="in_progress"))
    assert running_task(history) == "Write tests"
    history.append(listed("TaskUpdate", taskId="2", status="completed"))
    assert running_task(history) == ""


@pytest.mark.parametrize(
    "message",
    [
        user("What is the plan?"),
        listed("Task", description="Search", prompt="Find the handler"),
        listed("read_file", todos=items("content", "status")),
        listed("TaskUpdate", taskId="9", status="in_progress"),
        calls("1", name="TodoWrite", arguments="not json"),
        calls("1", name="TodoWrite", arguments="[1, null]"),
    ],
)
def test_without_a_list_no_task_is_running(message: Message) -> None:
    assert running_task([message]) == ""
