"""Telegram's own accounts, which are no people."""

from typing import Final

SHARED_ACCOUNTS: Final = frozenset(
    {777000, 1087968824, 136817688, 1271266957, 489000, 5434988373}
)
"""The accounts that write for others: anonymous admins, channels, service messages …"""
