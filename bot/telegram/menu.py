"""Show the bot's commands in Telegram's menu, in every language; admins see theirs too."""

import logging
from collections.abc import Collection, Sequence
from typing import Final

from telegram import Bot, BotCommand, BotCommandScope, BotCommandScopeChat
from telegram.error import InvalidToken, TelegramError

from agent.i18n import ENGLISH, languages, translate, use_language
from bot.telegram.connection import AnyApplication
from bot.updates.accept import until_reached

log = logging.getLogger(__name__)

COMMANDS: Final = (
    "ask quotes find stop new taste cellar language settings privacy export forget help".split()
)
ADMIN_COMMANDS: Final = "stats trace allow block clearcare broadcast".split()


async def show_commands(application: AnyApplication, admin_ids: Collection[int] = ()) -> None:
    """Show the commands where they changed; an admin who never wrote to the bot has no menu.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = application.bot
    for language in languages():

        async def show(language: str = language) -> None:
            await _show_menu(bot, COMMANDS, language)

        await until_reached(show, "Showing the commands")
    for admin_id in admin_ids:
        try:
            for language in languages():
                chat = BotCommandScopeChat(admin_id)
                await _show_menu(bot, [*COMMANDS, *ADMIN_COMMANDS], language, chat)
        except TelegramError as error:
            log.info("Admin %s is not shown the commands of admins: %s", admin_id, error)


async def _show_menu(
    bot: Bot, names: Sequence[str], language: str, scope: BotCommandScope | None = None
) -> None:
    # The English menu is for everybody whose language has none.
    code = None if language == ENGLISH else language
    with use_language(language):
        menu = tuple(BotCommand(name, translate(f"command_{name}")) for name in names)
    try:
        is_shown = await bot.get_my_commands(scope, code) == menu
    except InvalidToken:  # a 404: the server may not know this method
        is_shown = False
    if not is_shown:
        await bot.set_my_commands(menu, scope, code)
