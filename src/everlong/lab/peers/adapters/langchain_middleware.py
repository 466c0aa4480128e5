"""langchain's middleware: `create_agent(model, system_prompt=…, middleware=[…])`, called as the agent calls it.

The agent keeps the system prompt separate from the messages, so it never counts towards the trigger.
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

from everlong.lab.peers.adapters.langchain_messages import read, write
from everlong.lab.peers.shapes import SUMMARY, Fitting

MODEL = FakeListChatModel(responses=[SUMMARY])


def _cleared(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=budget)])
    system, rest = _apart(messages)
    sent: list[BaseMessage] = []

    def model(request: ModelRequest) -> ModelResponse:
        sent.extend(request.messages)
        return ModelResponse(result=[AIMessage("")])

    middleware.wrap_model_call(ModelRequest(model=MODEL, messages=rest), model)
    return [*system, *sent]


def _summarized(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    middleware = SummarizationMiddleware(model=MODEL, trigger=("tokens", budget))
    system, rest = _apart(messages)
    update = middleware.before_model({"messages": rest}, runtime=None)
    after = rest if update is None else update["messages"]
    return [*system, *(message for message in after if not isinstance(message, RemoveMessage))]


def _apart(messages: list[BaseMessage]) -> tuple[list[BaseMessage], list[BaseMessage]]:
    first = 1 if isinstance(messages[0], SystemMessage) else 0
    return messages[:first], messages[first:]


STRATEGIES = {
    "clear": Fitting(read=read, fit=_cleared, write=write),
    "summarize": Fitting(read=read, fit=_summarized, write=write),
}
