"""Talks: Telegram, the terminal, the command line."""

import os

# python-telegram-bot warns about every time span unless it may give them as `timedelta`.
os.environ.setdefault("PTB_TIMEDELTA", "true")
