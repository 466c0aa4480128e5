"""The strategies that the lab compares: everlong's presets, baselines, other libraries, and your own functions.

`strategy` says what a strategy is, `table` has them by name. A strategy never sees what will be asked of it.
"""
