"""Cutting text into terms, indexing it as it arrives, ranking it against what is asked. Chinese and English alike."""
