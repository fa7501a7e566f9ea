"""The bot over HTTP: the webhook, health, metrics, the API and the page for admins."""
