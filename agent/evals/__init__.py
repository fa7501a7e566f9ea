"""Evaluation of models and prompts: datasets of conversations, evaluators, reports."""
