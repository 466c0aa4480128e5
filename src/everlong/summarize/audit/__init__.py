"""The audit of a summary: what of it is not borne out by the conversation, and whether the rest may stand.

Pure: compares texts. Never calls a model, never raises, and keeps nothing.
"""
