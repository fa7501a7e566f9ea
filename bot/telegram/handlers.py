"""Handle general commands, texts and edits.

Every message that is meant for the bot gets a reply.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from telegram import BotCommand, Update
from telegram.ext import filters

from agent.documents.shop import find_greeting
from agent.i18n import current_language, languages, translate, use_language
from agent.languages import ENGLISH
from agent.markdown import escape
from agent.safety.state import SafetyState
from agent.turn import UNDER_AGE_SETTING, Change, Fact, get_chosen_settings
from bot import look_ups
from bot.telegram.answer_buttons import (
    NUMBERS_PARAMETER,
    international_button,
    numbers_button,
)
from bot.telegram.ask_shop import SHOP, show_how_to_ask
from bot.telegram.buttons import acknowledge, split_data
from bot.telegram.chat import (
    AnyHandler,
    ChatTurn,
    answer_text,
    on_command,
    on_message,
    on_press,
)
from bot.telegram.connection import AnyBot, retry_until_answered
from bot.telegram.messages import (
    TYPED_BY_USER,
    is_addressed,
    is_private,
    message_of,
    press_of,
    text_after_command,
    text_of,
)
from bot.telegram.sender import Button, ButtonRows
from bot.turn import TurnFilter
from db.changes.chats import MigrateChat
from db.changes.memory import TakeBackTurn, without_added_allergies

COMMANDS: Final = (
    "ask quotes find shop stop new taste cellar settings privacy export forget help"
).split()
"""The commands of the menu, in its order."""
FIND: Final = "find"
"""The command that finds places. An operator can switch it off."""
PRIVATE_COMMANDS: Final = "taste cellar shop settings export forget".split()
"""The commands whose answers others in a group must not read."""
SERVICE_MESSAGES: Final = (
    filters.StatusUpdate.ALL
    | filters.BOOST_ADDED
    | filters.GIVEAWAY_WINNERS
    | filters.PASSPORT_DATA
    | filters.SUCCESSFUL_PAYMENT
)
"""Messages that Telegram itself adds to a chat."""
MAX_GREETING_CHARS: Final = 2_000
"""How much of an owner's greeting is shown. Telegram takes twice as much in a message."""
AGE_PREFIX: Final = "ob:"
"""The prefix of the data of the age buttons: `ob:yes` or `ob:no`, in private chats only."""


def all_handlers(additional: Sequence[AnyHandler] = ()) -> list[AnyHandler]:
    """Return all handlers, with the `additional` ones.

    The first handler that accepts an update handles it, so their order matters.
    """
    in_group = ~filters.ChatType.PRIVATE
    new_message = filters.UpdateType.MESSAGE
    return [
        on_command("start", _start),
        on_press(AGE_PREFIX, _store_age),
        on_command("help", _show_help),
        on_command("new", _forget_conversation),
        on_command("stop", _stop),
        on_command(PRIVATE_COMMANDS, _refuse_in_group, in_group),
        on_command("ask", partial(_look_up, "ask")),
        on_command("quotes", partial(_look_up, "quotes")),
        on_command(FIND, partial(_look_up, FIND)),
        *additional,
        on_press("", _reject_old_button),
        on_message(TYPED_BY_USER & filters.COMMAND, _explain_no_answer),
        on_message(new_message & (filters.TEXT | filters.CAPTION), answer_text),
        on_message(filters.StatusUpdate.MIGRATE, _migrate),
        on_message(new_message & ~SERVICE_MESSAGES, _explain_no_answer),
        on_message(filters.UpdateType.EDITED_MESSAGE & filters.TEXT, _answer_edit),
    ]


async def _answer_edit(update: Update, turn: ChatTurn) -> None:
    """Answer an edited message anew if it began the last turn. Otherwise say that it is too late.

    The edit of a command is always too late, because the command was carried out.
    """
    message = message_of(update)
    if not is_addressed(message):
        return
    is_command = (message.text or "").startswith("/")
    if is_command or not await _take_back_turn(update, turn):
        turn.reply(translate("edited"))
        return
    await answer_text(update, turn)


async def _take_back_turn(update: Update, turn: ChatTurn) -> bool:
    """Take back the earlier turn of an edited message, with what that turn has changed.

    Return False if it was not the last turn of the conversation. The present turn collects this,
    and its commit carries it out.
    """
    repositories = turn.repositories
    chat_id = turn.chat_id
    message_id = message_of(update).message_id
    earlier_id = await repositories.turns.find_by_question(chat_id, message_id, turn.id)
    messages = repositories.messages
    last_id = await messages.find_last_turn(chat_id, thread_id=turn.thread_id)
    if earlier_id is None or earlier_id != last_id:
        return False
    turn.taken_back_turn_id = earlier_id
    change = await repositories.memory.find_undoable(turn.user_id, earlier_id)
    if change is not None:
        # An allergy that was added stays, because it may be dangerous to forget one.
        turn.taken_back_change = without_added_allergies(change)
    turn.change(TakeBackTurn(earlier_id, turn.user_id))
    return True


async def _show_help(update: Update, turn: ChatTurn) -> None:
    """Answer /help: say what the bot can do, and show numbers to call."""
    resources = turn.services.resources
    lines = []
    for line in translate("help").splitlines():
        is_about_places = line.startswith(f"/{FIND} ")
        if resources.finds_places or not is_about_places:
            lines.append(line)
    if turn.services.staff_chat_id is not None:
        lines.append(translate("help_shop"))
    numbers = resources.help.write_first_numbers()
    lines.append("")
    lines.append(translate("help_numbers", numbers=numbers))
    buttons: ButtonRows = ()
    if is_private(update):
        buttons = numbers_button()
    turn.reply("\n".join(lines), buttons)


async def _start(update: Update, turn: ChatTurn) -> None:
    """Answer /start: greet the user. In a private chat, ask for the age if it is not known.

    A link from a group is a /start with a parameter. Answer it with the numbers to call, or say how
    to ask the shop.
    """
    help_texts = turn.services.resources.help
    parameters = turn.message_text.split()[1:]
    if parameters == [NUMBERS_PARAMETER]:
        turn.reply(help_texts.write_numbers(SafetyState()), international_button())
        return
    if parameters == [SHOP]:
        await show_how_to_ask(turn)
        return
    age = help_texts.drinking_age
    paragraphs = await _greet(turn)
    buttons: ButtonRows = ()
    stored_age = get_chosen_settings(await turn.load_facts()).get("age")
    if is_private(update) and stored_age != str(age):
        older = Button(translate("start_older", age=age), f"{AGE_PREFIX}yes")
        younger = Button(translate("start_younger", age=age), f"{AGE_PREFIX}no")
        buttons = ((older, younger),)
        paragraphs.append(translate("start_age", age=age))
    turn.reply("\n\n".join(paragraphs), buttons)


async def _greet(turn: ChatTurn) -> list[str]:
    """Return the name of the shop, if it has one, and a greeting.

    The greeting is the owner's if there is one in the user's language.
    """
    resources = turn.services.resources
    chunks = await resources.documents.load_shop()
    own_greeting = find_greeting(chunks, current_language())[:MAX_GREETING_CHARS]
    greeting = escape(own_greeting) or translate("greeting")
    if not resources.shop_name:
        return [greeting]
    return [f"**{escape(resources.shop_name)}**", greeting]


async def _store_age(update: Update, turn: ChatTurn) -> None:
    """Store whether a user is of drinking age."""
    query = press_of(update)
    (answer,) = split_data(query, 1)
    adult = Fact("setting", f"age={turn.services.resources.help.drinking_age}")
    minor = Fact("setting", UNDER_AGE_SETTING)
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if answer == "yes":
        new_fact = adult
        old_fact = minor
        turn.reply(translate("start_done"))
    else:
        new_fact = minor
        old_fact = adult
        turn.reply(translate("start_without"))
    change = Change(
        user_id=turn.user_id, added_facts=(new_fact,), removed_facts=(old_fact,)
    )
    turn.change_memory(change)


async def _forget_conversation(update: Update, turn: ChatTurn) -> None:
    """Answer /new: delete the conversation in this chat or topic, and the user's concerns here."""
    chat_id = turn.chat_id
    turns_here = TurnFilter(chat_id=chat_id, thread_id=turn.thread_id)
    runner = turn.services.runner
    await runner.running.stop_everywhere(turns_here)
    messages = turn.repositories.messages
    last_turn = await messages.find_last_turn(chat_id, thread_id=turn.thread_id)
    turn.forget_conversation()
    turn.change(runner.safety.forget(chat_id, turn.user_id))
    if last_turn is None:
        turn.reply(translate("nothing_to_forget"))
    else:
        turn.reply(translate("forgotten"))


async def _stop(update: Update, turn: ChatTurn) -> None:
    """Answer /stop: stop the user's turn, which then answers with what is written so far."""
    own_turns = TurnFilter(
        chat_id=turn.chat_id, thread_id=turn.thread_id, user_id=turn.user_id
    )
    is_running = await turn.services.runner.running.stop_everywhere(own_turns)
    if not is_running:
        turn.reply(translate("nothing_to_stop"))


async def _refuse_in_group(update: Update, turn: ChatTurn) -> None:
    """Say that a command is for private chats only."""
    turn.reply(translate("only_in_private"))


async def _look_up(name: look_ups.CommandName, update: Update, turn: ChatTurn) -> None:
    """Answer `/ask QUESTION`, `/quotes QUERY` or `/find PLACES`."""
    resources = turn.services.resources
    if name == FIND and not resources.finds_places:
        await _explain_no_answer(update, turn)
        return
    message = message_of(update)
    runner = turn.services.runner
    text = text_after_command(message)
    look_up_or_usage = look_ups.parse_look_up(name, text, resources)
    if isinstance(look_up_or_usage, look_ups.LookUp):
        look_up = look_up_or_usage
        question = turn.make_question(look_up.history_text, kind=name)
        await runner.run(turn, question, look_up.make_reply)
        return
    usage = look_up_or_usage
    question = turn.make_question(message.text or "")
    if not await runner.offer_help(turn, question):
        turn.reply(usage)


async def _reject_old_button(update: Update, turn: ChatTurn) -> None:
    """Say that a button of an earlier release no longer works."""
    await acknowledge(press_of(update), translate("button_too_old"))


async def _migrate(update: Update, turn: ChatTurn) -> None:
    """Move the conversation of a group to the id of the supergroup that has replaced it.

    Telegram sends such a message in both chats. Each contains only the id of the other chat.
    """
    message = message_of(update)
    old_id = message.migrate_from_chat_id or message.chat.id
    new_id = message.migrate_to_chat_id or message.chat.id
    turn.change(MigrateChat(old_id, new_id))


async def _explain_no_answer(update: Update, turn: ChatTurn) -> None:
    """Say why there is no answer to an unknown command, a sticker or a poll.

    If the text is about a crisis, show help instead. Ignore messages that are not for the bot.
    """
    message = message_of(update)
    if not is_addressed(message):
        return
    question = turn.make_question(text_of(message))
    if await turn.services.runner.offer_help(turn, question):
        return
    if message.text:
        turn.reply(translate("unknown_command"))
    else:
        turn.reply(translate("text_only"))


async def show_commands(
    bot: AnyBot, *, finds_places: bool = True, has_staff: bool = False
) -> None:
    """Set the menu of commands in every language.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    commands = [*COMMANDS]
    if not finds_places:
        commands.remove(FIND)
    if not has_staff:
        commands.remove(SHOP)

    async def show() -> None:
        for language in languages():
            menu = []
            with use_language(language):
                for name in commands:
                    menu.append(BotCommand(name, translate(f"command_{name}")))
            # Telegram shows the menu without a code to users of all other languages.
            code: str | None = None
            if language != ENGLISH:
                code = language
            await bot.set_my_commands(menu, language_code=code)

    await retry_until_answered(show, "Showing the commands")
