"""Read each kind of export by its profile, which finds the wines in the tables of a file."""
