"""What runs inside a peer's environment: reads a job from a file, measures, writes the result to another."""
