"""A chat with the OpenAI SDK that never outgrows the context window."""

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from everlong import fit

client = OpenAI()
messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": "Answer briefly."}]
fitted = None
while question := input("> "):
    messages.append({"role": "user", "content": question})
    fitted = fit(messages, model="gpt-4o", previous=fitted)
    answer = client.chat.completions.create(model="gpt-4o", messages=fitted.messages)
    messages.append({"role": "assistant", "content": answer.choices[0].message.content or ""})
    print(answer.choices[0].message.content)
