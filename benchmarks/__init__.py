"""What performance claims are made of: `make bench`, or `python -m benchmarks --quick`."""
