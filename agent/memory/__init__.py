"""The memory of people: their facts and cellars, read from their words, changed, and used."""
