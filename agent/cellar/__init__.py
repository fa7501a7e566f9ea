"""The bottles that a user owns: what they are, when to drink them, which ones are meant."""
