"""What several steps share to change texts: markers, boundaries, changes, substitutes, file access. Pure."""
