"""Speed: what everlong costs compared with its peers, all measured in one run, as ratios, CPU time first.

A benchmark is a module with a function `run(bench)` that returns tables, and a row here; it is loaded when it runs.
"""

__all__ = ["BENCHMARKS", "BENCHMARK_NAMES"]

#: The benchmarks by name, in the order in which they run.
BENCHMARKS = {
    "import": "everlong.lab.speed.imports",
    "counting": "everlong.lab.speed.counts",
    "fitting": "everlong.lab.speed.fits",
    "selection": "everlong.lab.speed.selection",
    "freezing": "everlong.lab.speed.freezing",
    "gateways": "everlong.lab.speed.gateways.run",
    "moves": "everlong.lab.speed.gateways.moves",
    "edges": "everlong.lab.speed.edges",
}
BENCHMARK_NAMES = tuple(BENCHMARKS)
