"""Talks: Telegram, the terminal, the command line."""
