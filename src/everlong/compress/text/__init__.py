"""Shared tools of the steps for changing texts: markers, boundaries, changes, substitutes, file access. Pure."""
