"""The memory of users: their facts and cellars, parsed from texts, changed, and described."""
