"""Places nearby: exactly ten search queries, and the results of searching for them."""
