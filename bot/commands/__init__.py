"""The commands of the command line. The module of a command is imported when it runs."""
