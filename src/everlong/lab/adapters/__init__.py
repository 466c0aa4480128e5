"""Real frameworks in a task of three times the window: with our adapter, with their own compaction, with nothing.

They talk directly to a scripted provider, which has a window and refuses larger requests. So everything that is sent
was decided inside the framework.
"""
