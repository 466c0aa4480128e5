"""Drivers of programs: coding agents and chats that are started for each task."""
