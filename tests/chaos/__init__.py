"""The whole system under attack: replicas and workers are killed, their Postgres and its network go away."""
