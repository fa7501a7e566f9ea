"""Read wine lists and cellars as shops, restaurants and cellar programs export them.

A file becomes tables (`tables`). The profile of its kind finds the wines in them (`profiles`). What
the wines lack is derived from their names (`derive`). At last each wine is checked (`importing`).
"""
