"""A session of the OpenAI Agents SDK, stored in a file and fitted before every call."""

from agents import Agent, Runner

from everlong.adapters.openai_agents import EverlongSession, recall_tool

session = EverlongSession("user-42", "chat.db")
agent = Agent(name="Clerk", model="gpt-4o", tools=[recall_tool])
result = Runner.run_sync(agent, input("> "), session=session, run_config=session.run_config())
print(result.final_output)
