"""What operators see and set: metrics, reports, and the services of one process."""
