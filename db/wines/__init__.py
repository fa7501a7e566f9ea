"""The wine catalogue in SQL: search and import."""
