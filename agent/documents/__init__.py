"""Answers, quotes and refined questions, from the documents alone."""
