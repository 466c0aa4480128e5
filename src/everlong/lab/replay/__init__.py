"""Replay: a conversation that really happened, sent again request by request, and what that costs and keeps."""
