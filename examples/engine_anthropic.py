"""A chat stored in a file. The Anthropic SDK makes the calls."""

from anthropic import Anthropic, APIError

from everlong import Call, Prepared, open_engine

client = Anthropic()
call = Call(model="claude-sonnet-4-5", fmt="anthropic", max_tokens=1024)
with open_engine("chat.db") as opened:
    engine = opened.blocking
    while question := input("> "):
        engine.append("me", question)
        prepared: Prepared | None = engine.prepare("me", call)
        while prepared is not None:
            try:
                answer = client.messages.create(**prepared.body())
            except APIError as error:
                prepared = engine.refused(prepared, error)  # another request, or the error to show
            else:
                prepared = engine.answered(prepared, answer)  # None: it is recorded
                print("".join(block.text for block in answer.content if block.type == "text"))
