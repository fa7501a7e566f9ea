"""The catalogue in SQL: searching it, and filling it from files."""
