"""The audit of a summary: which sentences the conversation does not support, and whether the rest may be used.

Pure: it compares texts. It never calls a model, never raises, and keeps no state.
"""
