"""The wine catalogue: its wines in memory, their search, and the import of wine lists."""
