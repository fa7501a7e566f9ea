"""What turns change in the database.

A turn collects its changes while it runs, and its commit makes all of them.
"""
