"""Properties are tried on the same examples every time; `make soak` tries others, many times over."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("soak", deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("EVERLONG_SOAK") else "steady")
