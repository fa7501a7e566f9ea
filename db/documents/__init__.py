"""The knowledge base: files read, cut into chunks, indexed and found again."""
