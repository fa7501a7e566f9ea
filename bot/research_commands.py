"""The commands that look things up: /ask, /quotes and /find, in Telegram and in the terminal."""

from dataclasses import dataclass

from agent.research.desk import ResearchDesk
from bot.telegram_bot import AnyHandler, TelegramBot


@dataclass(frozen=True, slots=True)
class ResearchCommands:
    """/ask, /quotes, /find, their buttons, and locations: turns of `bot`, answered by `desk`.

    Everything durable is `bot`'s: replace its journal first, then make this of it.
    """

    bot: TelegramBot
    desk: ResearchDesk

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `TelegramBot.register`."""
        return []
