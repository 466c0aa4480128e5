"""The chat app: its API and its page, over the same engine and store as everything else."""
