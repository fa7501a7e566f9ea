"""Change the database for turns.

A turn collects its changes while it runs, and its commit makes all of them.
"""
