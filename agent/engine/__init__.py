"""The agent loop, independent of wine, Telegram, SQL and Langfuse."""
