"""Against real programs of others, by `make test-real`: left out of `make test`."""
