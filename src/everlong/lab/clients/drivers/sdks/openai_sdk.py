"""The OpenAI SDK: an agent's loop over chat completions, and over responses; plain or streamed."""

from typing import Any

import openai

from everlong.lab.clients.drivers.task import Task, read, run, tool

CHAT_TOOL: Any = {"type": "function", "function": tool()}
RESPONSES_TOOL: Any = {"type": "function", **tool()}


def _chat(task: Task) -> None:
    client = openai.OpenAI(base_url=f"{task.address}/v1", api_key="key", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    for prompt in task.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            request: Any = {"model": task.model, "messages": messages, "tools": [CHAT_TOOL]}
            if task.stream:
                with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**request).choices[0].message
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                text = read(call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        task.answers.append(message.content or "")


def _responses(task: Task) -> None:
    client = openai.OpenAI(base_url=f"{task.address}/v1", api_key="key", max_retries=0)
    items: list[Any] = []
    for prompt in task.prompts:
        items.append({"role": "user", "content": prompt})
        while True:
            request: Any = {"model": task.model, "input": items, "tools": [RESPONSES_TOOL], "store": False}
            request["instructions"] = "You are a careful clerk."
            if task.stream:
                response: Any = None
                for event in client.responses.create(**request, stream=True):
                    response = event.response if event.type == "response.completed" else response
            else:
                response = client.responses.create(**request)
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                output = {"type": "function_call_output", "call_id": call.call_id, "output": read(call.arguments)}
                items.append(output)
        task.answers.append(response.output_text)


if __name__ == "__main__":
    run({"chat": _chat, "responses": _responses}, openai.__version__)
