"""From Telegram's delivery to a turn: accepted, joined, in order, resumed."""
