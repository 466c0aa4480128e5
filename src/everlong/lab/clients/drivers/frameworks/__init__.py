"""Drivers of frameworks: agents that run their own loop."""
