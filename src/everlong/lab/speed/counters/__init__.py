"""Ways to count, one short file each; each imports only in the environment of the library it calls."""
