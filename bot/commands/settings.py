"""The settings as every command opens them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from config import Settings


def open_settings(log_level: str | None = None) -> "Settings":
    """The settings, with logging set up: at `log_level` unless LOG_LEVEL is DEBUG.

    Raises:
        SettingsError: a value is wrong.
    """
    from bot.logs import configure_logging  # noqa: PLC0415
    from config import load_settings  # noqa: PLC0415

    settings = load_settings()
    level = log_level if log_level and settings.log.level != "DEBUG" else settings.log.level
    configure_logging(level, settings.secrets)
    return settings
