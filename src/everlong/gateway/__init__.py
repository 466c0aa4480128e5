"""The gateway: any OpenAI or Anthropic client, one changed base URL."""
