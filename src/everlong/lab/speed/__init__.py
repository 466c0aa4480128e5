"""Speed: what everlong costs beside its peers, all measured in one run, as ratios, CPU time first."""

__all__ = ["NAMES"]

#: The names of the benchmarks; `benchmarks` runs them and loads what they need.
NAMES = ("import", "counting", "fitting", "selection", "gateways")
