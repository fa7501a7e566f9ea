"""The tests, and the doubles they talk to."""
