"""Resume: after a compaction, does the request still contain what the next recorded calls used?

`needs` says what a call needs, `record` looks it up in a session, `run` plays sessions and runs strategies at the same
compactions, `results` sums up. No model and no judge takes part.
"""
