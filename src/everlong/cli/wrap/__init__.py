"""`everlong wrap` and `everlong doctor`: run a client behind the gateway, and check what it needs.

`clients` has one file per client; `gateway` finds or starts the gateway and shares it; `process` gives the client the
terminal; `figures` reports the result. The user's files are not changed.
"""
