"""Conversations: recognised by their messages, held in memory, persisted. Sends nothing to clients or upstreams."""
