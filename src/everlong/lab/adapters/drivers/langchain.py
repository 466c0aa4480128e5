"""LangChain: `create_agent` with a tool in one thread, on langchain-openai (chat or responses) or -anthropic."""

from importlib.metadata import version
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from everlong.adapters.langchain import EverlongMiddleware
from everlong.lab.adapters.drivers.job import Job, main, read_file

MOST_STEPS = 400
LONGEST_ANSWER = 1_000
#: When LangChain's own compaction begins and what it keeps, as in its documentation, in shares of the window.
TRIGGER, KEEP = 0.8, 0.3


def _model(job: Job) -> Any:
    if job.dialect == "messages":
        address = {"base_url": job.address, "max_tokens": LONGEST_ANSWER}
        return ChatAnthropic(model=job.model, api_key="key", max_retries=0, **address)
    responses = {"use_responses_api": job.dialect == "responses"}
    return ChatOpenAI(model=job.model, base_url=f"{job.address}/v1", api_key="key", max_retries=0, **responses)


def _middleware(job: Job, model: Any) -> list[Any]:
    if job.how == "everlong":
        return [EverlongMiddleware(job.store, window=job.window)]
    if job.how == "own":
        assert job.window is not None, "its own compaction is told the window"
        trigger, keep = ("tokens", int(TRIGGER * job.window)), ("tokens", int(KEEP * job.window))
        return [SummarizationMiddleware(model=model, trigger=trigger, keep=keep)]
    return []


def run(job: Job) -> None:
    """Do the job."""
    model = _model(job)
    agent: Any = create_agent(
        model,
        tools=[read_file],
        system_prompt="You are a careful clerk.",
        middleware=_middleware(job, model),
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "errand"}, "recursion_limit": MOST_STEPS}
    for prompt in job.prompts:
        said = {"messages": [{"role": "user", "content": prompt}]}
        if job.stream:
            state: Any = None
            for kind, part in agent.stream(said, config, stream_mode=["values", "messages"]):
                state = part if kind == "values" else state
        else:
            state = agent.invoke(said, config)
        job.answers.append(state["messages"][-1].text)


if __name__ == "__main__":
    main(run, version("langchain"))
