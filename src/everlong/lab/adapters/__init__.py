"""Real frameworks in a task of three times the window: with our adapter, with their own compaction, with nothing.

They talk straight to a scripted provider, which has a window and refuses what is larger. So everything that is sent was
decided inside the framework.
"""
