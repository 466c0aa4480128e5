"""What the two OpenAI formats are made of; `openai_chat` and `openai_responses` put it together."""
