"""The bot over HTTP: webhook, health, metrics, the API."""
