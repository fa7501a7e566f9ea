"""The loop and what it stands on: knows no wine, no Telegram, no SQL, no Langfuse."""
