"""Reading of pictures, PDF files and voice messages, and reading answers aloud."""
