"""Prepares every request of a conversation. Pure functions for those who hold their own messages."""
