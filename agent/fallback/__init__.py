"""The rules that answer when there is no language model, or none that answers."""
