"""Storage in SQLite or Postgres, for the interfaces that `agent` defines."""
