"""Let the staff and admins say what is sold out, what is back, and what it costs now.

If only one wine has the name in `/out Barolo 2018`, the command changes it at once. If several have
it, each gets a button.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from telegram import Update

from agent.formatting import format_money, format_volume
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.offers import Offer
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
PRICE: Final = pattern(r"\d{1,6}(?:[.,]\d{1,2})?")
"""A price without its currency: "45", "12,50"."""
CURRENCY_SIGN: Final = pattern(r"\p{Sc}")
VINTAGES: Final = range(1900, 2101)
"""A whole number in this range is a vintage, not a price, unless it has a currency sign."""
MAX_LABEL_CHARS: Final = 60


class StockCommand(StrEnum):
    """What the staff may say about a wine."""

    OUT = "out"
    IN = "in"
    PRICE = "price"


class Target(NamedTuple):
    """An offer of a wine that a command may mean. /out and /in mean all offers of the wine."""

    wine: Wine
    position: int


def stock_handlers(admin_ids: Collection[int]) -> list[AnyHandler]:
    """Return the handlers of /out, /in and /price, and of the buttons below them."""
    named = [
        on_command(command.value, partial(_change_named, admin_ids, command))
        for command in StockCommand
    ]
    return [*named, on_press(PREFIX, partial(_change_pressed, admin_ids))]


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
    command, and do not learn that there is this one.
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
    query = WineQuery(
        name=name[:MAX_NAME_CHARS], in_stock_only=False, limit=MAX_RESULTS
    )
    result = await turn.repositories.wines.search(query)
    similar = (*result.other_vintages, *result.mentioned, *result.closest)
    targets = _list_targets(command, result.wines or similar)
    if not targets:
        turn.reply(translate("stock_unknown", name=escape(name)))
    elif len(targets) == 1 and result.wines:
        # A wine whose name is only similar is never changed without asking.
        _change(turn, command, targets[0], cents)
    else:
        buttons = [
            _make_button(command, target, cents) for target in targets[:MAX_RESULTS]
        ]
        turn.reply(translate("stock_which"), in_rows(buttons, 1))
    return None


def _split_price(text: str) -> tuple[str, int]:
    """Return the name and the price in cents of a text like `Barolo 2018 45,50 €`.

    If no price follows the name, return the whole text and 0.
    """
    without_sign = CURRENCY_SIGN.sub(" ", text).strip()
    name, _, last = without_sign.rpartition(" ")
    if not PRICE.fullmatch(last):
        return text, 0
    may_be_vintage = last.isdecimal() and int(last) in VINTAGES
    if may_be_vintage and not CURRENCY_SIGN.search(text):
        return text, 0
    price = float(last.replace(",", "."))
    return name.strip(), round(price * 100)


def _list_targets(command: StockCommand, wines: Sequence[Wine]) -> list[Target]:
    """Return what a command may mean: each wine, or each offer of each wine for a price."""
    targets = []
    for wine in wines:
        offers = wine.offers
        if command is not StockCommand.PRICE:
            offers = offers[:1]
        targets += [Target(wine, position) for position in range(len(offers))]
    return targets


def _make_button(command: StockCommand, target: Target, cents: int) -> Button:
    """Return the button that carries out a command for a target."""
    wine, position = target
    label = wine.label
    if command is StockCommand.PRICE:
        label += f" · {_describe(wine.offers[position])}"
    data = f"{PREFIX}{command}:{cents}:{position}:{digest_of(wine.id)}"
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
    if command is StockCommand.IN:
        turn.change(ChangeOffers(wine.id, all_positions, in_stock=True))
        turn.reply(translate("stock_in", wine=name))
    else:
        turn.change(ChangeOffers(wine.id, all_positions, in_stock=False))
        turn.reply(translate("stock_out", wine=name))
