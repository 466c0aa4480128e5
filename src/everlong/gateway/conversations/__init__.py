"""Conversations: found again by what they say, held in memory, persisted. Sends nothing to clients or upstreams."""
