"""Qwen Code: `qwen` with a prompt, then `qwen --continue`; the set-up is three options."""

import os

from everlong.lab.clients.drivers.task import Task, output_of, run


def _chat(task: Task) -> None:
    command = [task.program, "--auth-type", "openai", "--openai-base-url", f"{task.address}/v1"]
    command += ["--openai-api-key", "key", "--model", task.model, "--yolo", "--output-format", "text"]
    for turn, prompt in enumerate(task.prompts):
        again = ["--continue"] if turn else []
        task.answers.append(output_of([*command, *again, prompt], os.environ))


if __name__ == "__main__":
    run({"chat": _chat})
