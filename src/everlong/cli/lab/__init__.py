"""`everlong lab`: the commands that measure, replay and time, and the tables they print.

The lab computes the figures.
"""
