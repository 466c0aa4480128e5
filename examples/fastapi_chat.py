"""A chat server for many users: each sees only their own threads, and answers are streamed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse

from everlong import Failed, HttpModel, NoThread, Said, open_engine

app = FastAPI()
engine = open_engine("chat.db")
model = HttpModel("openai", "gpt-4o")
User = Annotated[str, Header()]


@app.get("/threads")
def threads(user: User) -> list[str]:
    return [thread.id for thread in engine.threads.threads(owner=user)]


@app.post("/threads/{thread}")
async def say(thread: str, text: str, user: User) -> StreamingResponse:
    try:
        await engine.expect_owner(thread, user)
    except NoThread as error:
        raise HTTPException(404, str(error)) from error

    async def words() -> AsyncIterator[str]:
        async for reply in engine.stream(thread, text, model=model, owner=user):
            yield reply.text if isinstance(reply, Said) else str(reply.error) if isinstance(reply, Failed) else ""

    return StreamingResponse(words(), media_type="text/plain")
