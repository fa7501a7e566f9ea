"""Answer and refine questions, and find quotes, with nothing but the documents."""
