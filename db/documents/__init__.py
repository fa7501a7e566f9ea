"""The knowledge base: read files, cut them into chunks, index and search them."""
