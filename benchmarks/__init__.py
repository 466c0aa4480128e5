"""Measurements beside the peers: everything in one run, as ratios, CPU time first. Start with `run.py`."""
