"""Queries and commands for each kind of stored data."""
