"""Let the staff and admins say which wine is sold out or back in stock, and change its price.

If only one wine has the name in `/out Barolo 2018`, the command changes it at once. If several
wines have the name, there is a button for each of them.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from telegram import Update

from agent.formatting import format_money, format_volume
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.offers import Offer, read_typed_price
from agent.sommelier.queries import MAX_NAME_CHARS, MAX_RESULTS, WineQuery
from agent.sommelier.wine import Wine
from agent.text import clip, pattern
from bot.telegram.ask_shop import is_from_staff
from bot.telegram.buttons import acknowledge, claim_once, parse_id, split_data
from bot.telegram.chat import NOT_MINE, AnyHandler, ChatTurn, on_command, on_press
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import Button, in_rows
from db.changes.stock import ChangeOffers
from db.wines.catalogue import digest_of

PREFIX: Final = "st:"
"""The prefix of the data of the buttons: `st:COMMAND:CENTS:POSITION:DIGEST`.

DIGEST stands for the id of the wine, which may be too long for the data of a button.
"""
CURRENCY_SIGN: Final = pattern(r"\p{Sc}")
"""A character of the Unicode category "symbol, currency"."""
MAX_LABEL_CHARS: Final = 60


class StockCommand(StrEnum):
    """A command by which the staff change the stock or the price of a wine."""

    OUT = "out"
    IN = "in"
    PRICE = "price"


class Target(NamedTuple):
    """An offer of a wine that a command may mean. /out and /in mean all offers of the wine."""

    wine: Wine
    position: int
    """The index of the offer in `wine.offers`."""


def stock_handlers(admin_ids: Collection[int]) -> list[AnyHandler]:
    """Return the handlers of /out, /in and /price, and of the buttons below them."""
    handlers = []
    for command in StockCommand:
        change_named = partial(_change_named, admin_ids, command)
        handlers.append(on_command(command.value, change_named))
    handlers.append(on_press(PREFIX, partial(_change_pressed, admin_ids)))
    return handlers


async def _may_change(admin_ids: Collection[int], turn: ChatTurn) -> bool:
    """Return whether the user is an admin, or writes in the chat of the staff."""
    return turn.user_id in admin_ids or await is_from_staff(turn)


async def _change_named(
    admin_ids: Collection[int],
    command: StockCommand,
    update: Update,
    turn: ChatTurn,
) -> object:
    """Change the only wine with a name, or ask which one is meant.

    Return `NOT_MINE` for users who may not change wines. So they get the answer to an unknown
    command, and do not learn that the command exists.
    """
    if not await _may_change(admin_ids, turn):
        return NOT_MINE
    name = text_after_command(message_of(update))
    cents = 0
    if command is StockCommand.PRICE:
        name, cents = _split_price(name)
    lacks_price = command is StockCommand.PRICE and not cents
    if not name or lacks_price:
        turn.reply(translate("stock_usage"))
        return None
    searched_name = name[:MAX_NAME_CHARS]
    query = WineQuery(name=searched_name, in_stock_only=False, limit=MAX_RESULTS)
    result = await turn.repositories.wines.search(query)
    similar = (*result.other_vintages, *result.mentioned, *result.closest)
    targets = _list_targets(command, result.wines or similar)
    if not targets:
        turn.reply(translate("stock_unknown", name=escape(name)))
    elif len(targets) == 1 and result.wines:
        # A wine whose name is only similar is never changed without asking.
        _change(turn, command, targets[0], cents)
    else:
        _ask_which(turn, command, targets, cents)
    return None


def _ask_which(
    turn: ChatTurn, command: StockCommand, targets: Sequence[Target], cents: int
) -> None:
    """Ask which target is meant, with a button for each of the first ones."""
    buttons = []
    for target in targets[:MAX_RESULTS]:
        buttons.append(_make_button(command, target, cents))
    turn.reply(translate("stock_which"), in_rows(buttons, 1))


def _split_price(text: str) -> tuple[str, int]:
    """Return the name and the price in cents of a text like `Barolo 2018 45,50 €`.

    If no price follows the name, return the whole text and 0.
    """
    without_sign = CURRENCY_SIGN.sub(" ", text).strip()
    name, _, last_word = without_sign.rpartition(" ")
    has_currency = CURRENCY_SIGN.search(text) is not None
    price = read_typed_price(last_word, has_currency=has_currency)
    if price is None:
        return text, 0
    return name.strip(), round(price * 100)


def _list_targets(command: StockCommand, wines: Sequence[Wine]) -> list[Target]:
    """Return what a command may mean: each wine, or each offer of each wine for a price."""
    targets = []
    for wine in wines:
        offers = wine.offers
        if command is not StockCommand.PRICE:
            # One target stands for all offers of the wine.
            offers = offers[:1]
        for position in range(len(offers)):
            targets.append(Target(wine, position))
    return targets


def _make_button(command: StockCommand, target: Target, cents: int) -> Button:
    """Return the button that carries out a command for a target."""
    wine, position = target
    label = wine.label
    if command is StockCommand.PRICE:
        offer = _describe(wine.offers[position])
        label = f"{label} · {offer}"
    digest = digest_of(wine.id)
    data = f"{PREFIX}{command}:{cents}:{position}:{digest}"
    return Button(clip(label, MAX_LABEL_CHARS), data)


def _describe(offer: Offer) -> str:
    """Return the kind, the size and the present price of an offer."""
    parts = [translate(f"offer_{offer.kind}")]
    if offer.size_ml is not None:
        parts.append(format_volume(offer.size_ml))
    if offer.price is not None:
        parts.append(format_money(offer.price, offer.currency))
    return " ".join(parts)


async def _change_pressed(
    admin_ids: Collection[int], update: Update, turn: ChatTurn
) -> None:
    """Change the wine of a button, unless a button below the same message was pressed before."""
    query = press_of(update)
    command, cents_part, position_part, digest = split_data(query, 4)
    position = parse_id(position_part)
    is_command = command in StockCommand.__members__.values()
    wine = await turn.repositories.wines.find_by_digest(digest)
    if not is_command or wine is None or position >= len(wine.offers):
        await acknowledge(query, translate("button_too_old"))
        return
    if not await _may_change(admin_ids, turn):
        await acknowledge(query, translate("not_yours"))
        return
    if not await claim_once(query, turn, PREFIX):
        return
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    target = Target(wine, position)
    _change(turn, StockCommand(command), target, parse_id(cents_part))


def _change(turn: ChatTurn, command: StockCommand, target: Target, cents: int) -> None:
    """Change a wine and reply what has changed. The turn collects both until its commit."""
    wine, position = target
    name = escape(wine.label)
    if command is StockCommand.PRICE:
        price = cents / 100
        turn.change(ChangeOffers(wine.id, (position,), price=price))
        shown_price = format_money(price, wine.offers[position].currency)
        turn.reply(translate("stock_price", wine=name, price=shown_price))
        return
    all_positions = tuple(range(len(wine.offers)))
    is_in_stock = command is StockCommand.IN
    turn.change(ChangeOffers(wine.id, all_positions, in_stock=is_in_stock))
    if is_in_stock:
        turn.reply(translate("stock_in", wine=name))
    else:
        turn.reply(translate("stock_out", wine=name))
