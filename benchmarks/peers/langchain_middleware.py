"""langchain's middleware: `create_agent(model, system_prompt=…, middleware=[…])`, called as the agent calls it.

The agent keeps the system prompt apart from the messages, so it never counts against the trigger.
"""

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRequest,
    ModelResponse,
    SummarizationMiddleware,
)
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage

from benchmarks.peers import langchain_messages
from benchmarks.peers.shapes import SUMMARY, Fitting, Message

MODEL = FakeListChatModel(responses=[SUMMARY])


def _cleared(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=budget)])
    sent: list[BaseMessage] = []

    def model(request: ModelRequest) -> ModelResponse:
        sent.extend(request.messages)
        return ModelResponse(result=[AIMessage("")])

    middleware.wrap_model_call(ModelRequest(model=MODEL, messages=messages[1:]), model)
    return [messages[0], *sent]


def _summarized(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    middleware = SummarizationMiddleware(model=MODEL, trigger=("tokens", budget))
    update = middleware.before_model({"messages": messages[1:]}, runtime=None)
    after = messages[1:] if update is None else update["messages"]
    return [messages[0], *(message for message in after if not isinstance(message, RemoveMessage))]


def _read(messages: list[Message]) -> list[BaseMessage]:
    converted = langchain_messages.read(messages)
    if not isinstance(converted[0], SystemMessage):
        raise ValueError("the transcript has no system prompt")
    return converted


STRATEGIES = {
    "clear": Fitting(read=_read, fit=_cleared, write=langchain_messages.write),
    "summarize": Fitting(read=_read, fit=_summarized, write=langchain_messages.write),
}
