"""Concerns of people who should not drink, and addresses of help."""
