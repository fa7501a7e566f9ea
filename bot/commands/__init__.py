"""What the commands of the command line do; what they need is imported when they run."""
