"""What everlong costs beside its peers: everything in one run, as ratios, CPU time first."""

__all__ = ["NAMES"]

#: The benchmarks that can be asked for; `program` runs them, and loads what they need.
NAMES = ("import", "counting", "fitting", "selection", "gateways")
