"""`everlong lab`: the commands that measure, replay and time, and the tables they print. The figures are the lab's."""
