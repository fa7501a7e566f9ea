"""Messages, commands and buttons in Telegram."""
