"""The measures: how much of a conversation is left after a strategy has brought it under a budget.

One file per measure makes its cases; `presence` decides whether a text is there; `measurement` runs the cases with
strategies and sums up. No model and no judge takes part.
"""
