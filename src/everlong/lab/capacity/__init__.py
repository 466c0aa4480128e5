"""Capacity: the replicas, memory and database that a rate of requests needs, and the first bottleneck.

`costs` has the cost of one request, `lengths` the length of real conversations, `arrivals` when requests come, and
`queues` the formulas. `plan` adds everything up, and `simulation` plays the same load to find how long requests wait.
"""
