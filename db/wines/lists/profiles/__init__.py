"""How each kind of export is read. A profile finds the wines in the tables of a file."""
