"""The measures: how much of a conversation is still there once a strategy has brought it under a budget.

A file for each measure makes its cases; `presence` decides whether a text is there, `measurement` puts the cases to
strategies and sums up. No model and no judge is asked.
"""
