"""aider with a file in the chat: its command line creates the coder, which then gets one message after the other.

aider shortens a long chat by itself; one of its options prevents that, because it is the gateway's task.
"""

from importlib.metadata import version

from aider.main import main  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run

FILE = "ledger.txt"
QUIET = (
    "--no-git",
    "--no-auto-lint",
    "--no-check-update",
    "--no-show-release-notes",
    "--analytics-disable",
    "--no-pretty",
)
ALONE = ("--yes-always", "--no-suggest-shell-commands", "--no-detect-urls", "--no-show-model-warnings")


def _chat(task: Task) -> None:
    model = ["--model", f"openai/{task.model}", "--openai-api-base", f"{task.address}/v1", "--openai-api-key", "key"]
    chat = [
        "--edit-format",
        "diff",
        "--max-chat-history-tokens",
        "1000000",
        "--stream" if task.stream else "--no-stream",
    ]
    coder = main([*QUIET, *ALONE, *model, *chat, FILE], return_coder=True)
    for prompt in task.prompts:
        task.answers.append(coder.run(with_message=prompt) or "")


if __name__ == "__main__":
    run({"chat": _chat}, version("aider-chat"))
