"""What is remembered of people: read from their words, changed, told, and used."""
