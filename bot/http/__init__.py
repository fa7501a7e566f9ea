"""The bot over HTTP: webhook, health, metrics, the API, the page of admins."""
