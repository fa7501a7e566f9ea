"""Evaluate models and prompts by conversations: datasets, evaluators, reports."""
