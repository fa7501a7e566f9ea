"""Repositories over sessions."""
