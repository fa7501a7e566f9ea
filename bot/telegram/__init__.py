"""What a person in Telegram sends and sees."""
