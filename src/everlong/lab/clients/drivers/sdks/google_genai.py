"""Google's SDK: its chat, which keeps the history itself; the driver answers the function calls."""

import json
from typing import Any

from google import genai  # type: ignore[import-not-found]
from google.genai import types  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, read, run, tool


def _contents(task: Task) -> None:
    options = types.HttpOptions(base_url=task.address)
    client = genai.Client(api_key="key", http_options=options)
    declared: Any = {"function_declarations": [tool()]}
    config = types.GenerateContentConfig(
        system_instruction="You are a careful clerk.",
        max_output_tokens=1_000,
        tools=[declared],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    chat = client.chats.create(model=task.model, config=config)
    for prompt in task.prompts:
        said: Any = prompt
        while True:
            words, calls = _answered(chat, said, stream=task.stream)
            if not calls:
                break
            said = [
                types.Part.from_function_response(name=call.name, response={"output": read(json.dumps(call.args))})
                for call in calls
            ]
        task.answers.append(words)


def _answered(chat: Any, said: Any, *, stream: bool) -> tuple[str, list[Any]]:
    """What the model says, and the functions it calls."""
    chunks = list(chat.send_message_stream(said)) if stream else [chat.send_message(said)]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    calls = [part.function_call for part in parts if part.function_call]
    return "".join(part.text for part in parts if part.text and not part.thought), calls


if __name__ == "__main__":
    run({"contents": _contents}, genai.__version__)
