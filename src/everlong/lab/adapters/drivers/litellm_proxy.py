"""litellm: its proxy as a process, and an agent loop with the OpenAI SDK that knows nothing about compaction."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.error import URLError

from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

from everlong.lab.adapters.drivers.job import Job, main, read_file
from everlong.lab.clients.drivers.task import tool

TOOL: Any = {"type": "function", "function": tool()}
KEY = "sk-of-the-lab"
STARTING = 180.0  # seconds, on a busy machine
#: What a user writes next to the proxy's configuration to configure the adapter.
HANDLER = """from everlong.adapters.litellm import EverlongHandler

handler = EverlongHandler({store!r}, window={window!r})
"""


def run(job: Job) -> None:
    """Do the job."""
    with _proxy(job) as address, OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as client:
        messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
        for prompt in job.prompts:
            messages.append({"role": "user", "content": prompt})
            job.answers.append(_turn(job, client, messages))


def _turn(job: Job, client: OpenAI, messages: list[Any]) -> str:
    while True:
        if job.stream:
            with client.chat.completions.create(
                model=job.model, messages=messages, tools=[TOOL], stream=True, stream_options={"include_usage": True}
            ) as pieces:
                state: Any = ChatCompletionStreamState()
                for piece in pieces:
                    state.handle_chunk(piece)
            message = state.get_final_completion().choices[0].message
        else:
            message = (
                client.chat.completions.create(model=job.model, messages=messages, tools=[TOOL]).choices[0].message
            )
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        if not message.tool_calls:
            return message.content or ""
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": read_file(**json.loads(call.function.arguments))}
            for call in message.tool_calls
        ]


@contextmanager
def _proxy(job: Job) -> Iterator[str]:
    """Run litellm's proxy in front of the provider while this is entered; yield its address."""
    params = {"model": f"openai/{job.model}", "api_base": f"{job.address}/v1", "api_key": "key"}
    config: dict[str, Any] = {
        "model_list": [{"model_name": job.model, "litellm_params": params}],
        "litellm_settings": {"telemetry": False},
        "router_settings": {"num_retries": 0},
        "general_settings": {"master_key": KEY},
    }
    if job.how == "everlong":
        Path("compaction.py").write_text(HANDLER.format(store=job.store, window=job.window), encoding="utf-8")
        config["litellm_settings"]["callbacks"] = "compaction.handler"
        config["router_settings"]["retry_policy"] = {"BadRequestErrorRetries": 2}
    Path("config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).parent / "litellm"
    command = [str(program), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with Path("proxy.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(f"the proxy did not start: {Path('proxy.log').read_text(encoding='utf-8')[-500:]}")


if __name__ == "__main__":
    main(run, version("litellm"))
