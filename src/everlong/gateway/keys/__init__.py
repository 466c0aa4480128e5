"""Keys of the gateway's clients: what each may do, and what each has spent."""
