"""Properties are tried on the same examples every time; `make soak` tries others, many times over."""

import os

from hypothesis import HealthCheck, settings

# How long an example takes to make says how busy the machine is, and nothing of what is tested.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("EVERLONG_SOAK") else "steady")
