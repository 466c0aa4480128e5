"""`everlong wrap` and `everlong doctor`: a client behind the gateway in one command, and what is there to do it with.

`clients` has what is known of each client, one a file; `gateway` finds or starts the gateway and shares it; `process`
gives the client the terminal; `figures` says in the end what it came to. Nothing of the user's files is changed.
"""
