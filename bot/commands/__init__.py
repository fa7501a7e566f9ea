"""The commands of the command line; their modules are imported when they run."""
