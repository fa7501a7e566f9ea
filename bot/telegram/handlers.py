"""Handle general commands, texts and edits; every message that addresses the bot gets a reply."""

from collections.abc import Sequence
from functools import partial
from typing import Final, get_args

from telegram import BotCommand, Update
from telegram.ext import filters

from agent.i18n import ENGLISH, languages, translate, use_language
from agent.turn import UNDER_AGE_SETTING, Fact, get_chosen_settings
from bot import look_ups
from bot.question import is_retry
from bot.telegram.buttons import acknowledge, replace_buttons, split_data
from bot.telegram.connection import AnyBot, retry_until_answered
from bot.telegram.conversation import (
    AnyHandler,
    Conversation,
    answer_text,
    on_command,
    on_message,
    on_press,
)
from bot.telegram.messages import (
    TYPED_BY_USER,
    chat_and_user_ids,
    destination,
    is_addressed,
    is_private,
    message_of,
    press_of,
    text_after_command,
)
from bot.telegram.sender import Button, ButtonRows

COMMANDS: Final = (
    "ask quotes find stop new taste cellar settings privacy export forget help".split()
)
PRIVATE_COMMANDS: Final = "taste cellar settings export forget".split()
SERVICE_MESSAGES: Final = (
    filters.StatusUpdate.ALL
    | filters.BOOST_ADDED
    | filters.GIVEAWAY_WINNERS
    | filters.PASSPORT_DATA
    | filters.SUCCESSFUL_PAYMENT
)
"""Messages that Telegram itself adds to a chat."""
AGE_PREFIX: Final = "ob:"
"""The prefix of the data of the age buttons: `ob:yes` or `ob:no`, in private chats only."""


def all_handlers(additional: Sequence[AnyHandler] = ()) -> list[AnyHandler]:
    """Return all handlers, with `additional` ones; the first that accepts an update handles it."""
    new_message = filters.UpdateType.MESSAGE
    return [
        on_command("start", _start),
        on_press(AGE_PREFIX, _store_age),
        on_command("help", partial(_reply_with, "help")),
        on_command("new", _forget_conversation),
        on_command("stop", _stop),
        on_command(
            PRIVATE_COMMANDS, partial(_reply_with, "only_in_private"), ~filters.ChatType.PRIVATE
        ),
        *(on_command(name, partial(_look_up, name)) for name in get_args(look_ups.CommandName)),
        *additional,
        on_press("", _reject_old_button),
        on_message(TYPED_BY_USER & filters.COMMAND, _explain_no_answer),
        on_message(new_message & (filters.TEXT | filters.CAPTION), answer_text),
        on_message(filters.StatusUpdate.MIGRATE, _migrate),
        on_message(new_message & ~SERVICE_MESSAGES, _explain_no_answer),
        on_message(filters.UpdateType.EDITED_MESSAGE & filters.TEXT, _answer_edit),
    ]


async def _answer_edit(update: Update, conversation: Conversation) -> None:
    """Answer an edited message anew if it began the last turn; else explain that edits are late."""
    message = message_of(update)
    if not is_addressed(message):
        return
    is_command = (message.text or "").startswith("/")
    if not is_command and await _undo_turn(update, conversation):
        await answer_text(update, conversation)
    else:
        await conversation.reply(update, translate("edited"))


async def _undo_turn(update: Update, conversation: Conversation) -> bool:
    """Delete the messages of the turn of an edited message; return False if it was not the last."""
    to, repositories = destination(update), conversation.repositories
    turn_id = await repositories.inbox.find_turn(to.chat_id, message_of(update).message_id)
    if turn_id is None:
        return False
    thread_id = to.thread_id or 0
    is_undone = await repositories.messages.delete_last_turn(
        to.chat_id, turn_id, thread_id=thread_id
    )
    # An interrupted try of this turn may have undone it already.
    return is_undone or is_retry()


async def _start(update: Update, conversation: Conversation) -> None:
    """Answer /start with a greeting; in a private chat, ask for the age unless it is known."""
    age = conversation.resources.help.drinking_age
    buttons = ButtonRows()
    stored_age = get_chosen_settings(await conversation.load_facts(update)).get("age")
    if is_private(update) and stored_age != str(age):
        older = Button(translate("start_older", age=age), f"{AGE_PREFIX}yes")
        younger = Button(translate("start_younger", age=age), f"{AGE_PREFIX}no")
        buttons = ((older, younger),)
    await conversation.reply(update, translate("greeting"), buttons)


async def _store_age(update: Update, conversation: Conversation) -> None:
    """Store whether a user is of drinking age."""
    query = press_of(update)
    (answer,) = split_data(query, 1)
    adult = Fact("setting", f"age={conversation.resources.help.drinking_age}")
    minor = Fact("setting", UNDER_AGE_SETTING)
    new, old = (adult, minor) if answer == "yes" else (minor, adult)
    await conversation.change_memory(update, added_facts=(new,), removed_facts=(old,))
    await acknowledge(query)
    await replace_buttons(query.message, ())
    text = translate("start_done" if answer == "yes" else "start_without")
    await conversation.reply(update, text)


async def _forget_conversation(update: Update, conversation: Conversation) -> None:
    """Answer /new: delete the conversation of this chat or topic."""
    to, turns = destination(update), conversation.turns
    chat_id, thread_id = to.chat_id, to.thread_id or 0
    await turns.running.stop_everywhere(chat_id=chat_id, thread_id=thread_id, is_forgotten=True)
    forgotten = await conversation.repositories.messages.forget(chat_id, thread_id=thread_id)
    await turns.safety.forget(chat_id)
    await conversation.reply(update, translate("forgotten" if forgotten else "nothing_to_forget"))


async def _stop(update: Update, conversation: Conversation) -> None:
    """Answer /stop: stop the turn of this user, which then answers with the part written so far."""
    chat_id, user_id = chat_and_user_ids(update)
    thread_id = destination(update).thread_id or 0
    stop = conversation.turns.running.stop_everywhere
    if not await stop(chat_id=chat_id, thread_id=thread_id, user_id=user_id):
        await conversation.reply(update, translate("nothing_to_stop"))


async def _reply_with(name: str, update: Update, conversation: Conversation) -> None:
    """Answer with the text of this name from the locales."""
    await conversation.reply(update, translate(name))


async def _look_up(name: look_ups.CommandName, update: Update, conversation: Conversation) -> None:
    """Answer a command: /ask QUESTION, /quotes QUERY (one message each), /find PLACES."""
    message = message_of(update)
    look_up = look_ups.parse_look_up(name, text_after_command(message), conversation.resources)
    if isinstance(look_up, str):  # a usage message
        question = conversation.build_question(update, message.text or "")
        if not await conversation.turns.offer_help(question):
            await conversation.reply(update, look_up)
        return
    question = conversation.build_question(update, look_up.history_text, kind=name)
    await conversation.turns.run_turn(question, look_up.make_reply)


async def _reject_old_button(update: Update, conversation: Conversation) -> None:
    """Explain that a button of an earlier version no longer works."""
    await acknowledge(press_of(update), translate("button_too_old"))


async def _migrate(update: Update, conversation: Conversation) -> None:
    """Move the conversation of a group to the id of the supergroup that replaces it."""
    message = message_of(update)
    old_id = message.migrate_from_chat_id or message.chat.id
    new_id = message.migrate_to_chat_id or message.chat.id
    await conversation.repositories.chats.migrate(old_id, new_id)


async def _explain_no_answer(update: Update, conversation: Conversation) -> None:
    """Explain why there is no answer to an unknown command, a sticker or a poll.

    Offer help instead if the text states a crisis. Ignore messages that do not address the bot.
    """
    message = message_of(update)
    if not is_addressed(message):
        return
    text = message.text or message.caption or ""
    if not await conversation.turns.offer_help(conversation.build_question(update, text)):
        explanation = translate("unknown_command" if message.text else "text_only")
        await conversation.reply(update, explanation)


async def show_commands(bot: AnyBot) -> None:
    """Set the menu of commands in every language.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    async def show() -> None:
        for language in languages():
            with use_language(language):
                menu = [BotCommand(name, translate(f"command_{name}")) for name in COMMANDS]
            # Without a code, English is the menu of all languages that have no menu of their own.
            code = None if language == ENGLISH else language
            await bot.set_my_commands(menu, language_code=code)

    await retry_until_answered(show, "Showing the commands")
