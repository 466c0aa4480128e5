"""What may stand in place of a conversation's beginning: facts copied by code, words written by a model and audited.

Pure: prompts, parsing, audit and merging. Who asks which model, and when, is the engine's affair.
"""
