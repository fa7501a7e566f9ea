"""One module per candidate, each with `make(base_url) -> Candidate`."""
