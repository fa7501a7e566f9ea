"""Show admins the numbers, in the chat and on a page, and let them decide who is let in."""
