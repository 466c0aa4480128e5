"""A model that does what a script says: for tests, examples and benchmarks, in process or over real HTTP."""
