"""What happens to accepted messages when processes, databases and replicas die: `make crash-test`."""
