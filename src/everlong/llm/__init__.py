"""Model clients and what they bring: streams in four wire formats, served windows, a scripted and a local model."""
