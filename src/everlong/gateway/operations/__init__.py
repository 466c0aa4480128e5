"""What operators see and set: limits, metrics, reports, and the services of one process."""
