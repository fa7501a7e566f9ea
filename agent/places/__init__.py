"""Places nearby: exactly ten search queries, and what a search returned for them."""
