"""The agent: it thinks, and knows no Telegram and no SQL."""
