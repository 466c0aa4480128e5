"""The strategies that the lab compares: everlong's presets, baselines, other libraries, and functions of your own.

`strategy` says what a strategy is, `table` knows them by name. A strategy never sees what will be asked of it.
"""
