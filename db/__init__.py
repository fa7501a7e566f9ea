"""Remembers: SQLite or Postgres behind the ports of `agent`."""
