"""Store updates, group them into turns, and run the turns in order, again after a crash."""
