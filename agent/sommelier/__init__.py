"""The product: what a guest is answered, from the catalogue alone."""
