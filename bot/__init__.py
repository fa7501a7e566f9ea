"""The side that talks to people: Telegram, HTTP, the terminal, the command line."""

import os

# Without this variable, python-telegram-bot gives time spans as numbers, and warns each time.
os.environ.setdefault("PTB_TIMEDELTA", "true")
