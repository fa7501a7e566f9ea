"""How each kind of export is read. A profile lists the wines of tables."""
