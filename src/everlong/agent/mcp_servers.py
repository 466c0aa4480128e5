"""Connect MCP servers and offer their tools to the agent, with the official `mcp` package, imported on first use.

Each connection has its own task. A server that cannot be reached adds one line to `problems`; calls to one that dies or
hangs later fail. Nothing that a server does can end a turn or the program.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from everlong.agent.config import McpServer
from everlong.agent.definitions import Outcome, Place, Tool, call_action
from everlong.agent.permissions.action import Action
from everlong.core import Image, JsonObject
from everlong.extras import expect_extras

__all__ = ["McpServers"]

NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
LONGEST_REASON = 300
MOST_PAGES = 50  # of a server's list of tools
CLOSING = 10.0  # seconds for a server to end
#: What servers claim about their tools. A claim is shown and never believed.
CLAIMS = {
    "read_only_hint": "read-only",
    "destructive_hint": "destructive",
    "idempotent_hint": "same effect if repeated",
    "open_world_hint": "accesses other systems",
}


class McpServers:
    """Connects MCP servers inside a `with` statement. `taken` are names that their tools may not have.

    async with McpServers(config.mcp, taken={"read_file"}) as servers: Agent(engine, model, (*own, *servers.tools))
    """

    def __init__(self, servers: Sequence[McpServer], *, taken: Sequence[str] = ()) -> None:
        self._links = [_Link(server) for server in servers]
        self._taken = set(taken)
        #: Their tools; a name that is taken gets the server's name before it.
        self.tools: tuple[Tool, ...] = ()
        #: One line for each server that could not be connected.
        self.problems: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(link.connect() for link in self._links))
        except asyncio.CancelledError:
            await self._close()
            raise
        self.problems = tuple(f"MCP server {link.server.name}: {link.problem}" for link in self._links if link.problem)
        self.tools = tuple(self._tools())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links))

    def _tools(self) -> Iterator[Tool]:
        for link in self._links:
            for offer in link.offers:
                name = _free_name(NOT_IN_NAME.sub("_", offer.name), link.server.name, self._taken)
                self._taken.add(name)
                yield Tool(
                    name=name,
                    description=offer.description or offer.name,
                    parameters=json.dumps(offer.input_schema),
                    run=link.runner(offer.name),
                    action=partial(_action, name, link.server.name, offer.annotations),
                )


def _action(name: str, server: str, annotations: Any, arguments: JsonObject, place: Place) -> Action:  # noqa: ARG001
    """Describe a call. What a server says about its tool is shown as the server's own claim."""
    said = [text for field, text in CLAIMS.items() if getattr(annotations, field, None)]
    claims = f"; according to the server: {', '.join(said)}" if said else ""
    return call_action(name, arguments, f"MCP server {server}{claims}")


def _free_name(name: str, server: str, taken: set[str]) -> str:
    """Return a name that is not taken. Example: read, of server files, read is taken -> files_read"""
    short = name[:LONGEST_NAME]
    if short not in taken:
        return short
    prefixed = f"{NOT_IN_NAME.sub('_', server)}_{name}"[:LONGEST_NAME]
    number, free = 2, prefixed
    while free in taken:
        free, number = f"{prefixed[: LONGEST_NAME - 4]}_{number}", number + 1
    return free


@dataclass(slots=True)
class _Link:
    """A connection to one server, held by a separate task: the task that opens it has to close it."""

    server: McpServer
    offers: tuple[Any, ...] = ()
    problem: str = ""
    client: Any = None
    task: "asyncio.Task[None] | None" = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> None:
        """Connect and list the tools, or set `problem`; never later than the server's seconds."""
        self.task = asyncio.create_task(self._hold(), name=f"MCP server {self.server.name}")
        ready = asyncio.create_task(self.ready.wait())
        try:
            await asyncio.wait({self.task, ready}, timeout=self.server.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self.ready.is_set():
            return
        if self.task.done():
            self.problem = _reason(self.task)
        else:
            self.problem = f"it did not answer within {self.server.seconds:g} seconds"
            await self.close()

    async def close(self) -> None:
        """Close the connection; a server that does not end in time is left alone."""
        self.leave.set()
        if self.task is None:
            return
        if not self.ready.is_set():
            self.task.cancel()
        await asyncio.wait((self.task,), timeout=CLOSING)
        if not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,), timeout=CLOSING)
        if self.task.done() and not self.task.cancelled():
            self.task.exception()  # retrieved, so that asyncio does not log it

    def runner(self, name: str) -> Callable[[JsonObject, Place], Any]:
        """Return the function that runs the server's tool of that name."""

        async def run(arguments: JsonObject, place: Place) -> Outcome:  # noqa: ARG001 - the server is elsewhere
            return await self._call(name, arguments)

        return run

    async def _call(self, name: str, arguments: JsonObject) -> Outcome:
        if self.task is None or self.task.done():
            reason = _reason(self.task) if self.task is not None else "it was never connected"
            return Outcome(f"MCP server {self.server.name} is gone: {reason}", failed=True)
        call = asyncio.create_task(self.client.call_tool(name, arguments))
        try:
            await asyncio.wait({call, self.task}, timeout=self.server.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not call.done():
                call.cancel()
        if not call.done():
            await asyncio.wait((call,), timeout=CLOSING)
            seconds = f"{self.server.seconds:g} seconds"
            why = f"is gone: {_reason(self.task)}" if self.task.done() else f"did not answer within {seconds}"
            return Outcome(f"MCP server {self.server.name} {why}", failed=True)
        if call.cancelled() or call.exception() is not None:
            return Outcome(f"MCP server {self.server.name}: {name}: {_reason(call)}", failed=True)
        return _outcome(call.result())

    async def _hold(self) -> None:
        expect_extras("an MCP server", "mcp")
        from mcp import Client  # noqa: PLC0415 - heavy, and only needed for servers

        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            self.client = await stack.enter_async_context(Client(transport, read_timeout_seconds=self.server.seconds))
            self.offers = await _list_tools(self.client)
            self.ready.set()
            await self.leave.wait()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server = self.server
        if server.command:
            from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415 - see above

            quiet = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - in the stack
            parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
            return stdio_client(parameters, errlog=quiet)
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - see above
        from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415 - see above

        http = await stack.enter_async_context(create_mcp_http_client(headers=dict(server.headers)))
        return streamable_http_client(server.url, http_client=http)


async def _list_tools(client: Any) -> tuple[Any, ...]:
    """Return all tools of a server, read page by page."""
    tools: list[Any] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(tools)


def _outcome(result: Any) -> Outcome:
    """Return a server's result as an outcome: texts, pictures, and the names of what is neither."""
    texts, images = [], []
    for block in result.content:
        match block.type:
            case "text":
                texts.append(block.text)
            case "image":
                images.append(Image(data=block.data, media_type=block.mime_type))
            case "resource" if hasattr(block.resource, "text"):
                texts.append(block.resource.text)
            case "resource_link":
                texts.append(f"[{block.name}: {block.uri}]")
            case _:
                texts.append(f"[{block.type}: not shown]")
    if not texts and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return Outcome("\n".join(texts), failed=bool(result.is_error), images=tuple(images))


def _reason(task: "asyncio.Task[Any]") -> str:
    """Return in one line why a task ended without a result."""
    if task.cancelled():
        return "it was stopped"
    error = task.exception()
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if error is None:
        return "it has ended"
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:LONGEST_REASON]
