"""What a model can call: the registry, and one file per tool family."""
