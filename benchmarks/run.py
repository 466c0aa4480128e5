"""`python benchmarks/run.py [NAME …] [--json FILE] [--quick]`: measurements beside the peers, in one run, as ratios."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    # Started as a file, Python looks beside it; the modules here are named from the folder above.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    import_module("benchmarks.program").main()
