"""What turns change in the database: collected while a turn runs, carried out by its commit."""
