"""The HTTP server: its application, its endpoints and the process that runs them.

Decisions about requests are made elsewhere.
"""
