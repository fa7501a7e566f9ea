"""Read wine lists and cellars as shops, restaurants and cellar programs export them.

A file becomes tables (`tables`), the profile of its kind lists the wines in them (`profiles`), what
they lack is derived from their names (`derive`), and each is checked as a wine (`importing`).
"""
