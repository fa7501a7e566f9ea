"""Hostile texts against the running product: a model that obeys them, and what people then see."""
