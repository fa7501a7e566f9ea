"""What the house sommelier says: a table of sentences for each language."""
