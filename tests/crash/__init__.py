"""What becomes of accepted messages when processes, databases and replicas die."""
