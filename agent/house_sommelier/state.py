"""The state of a dialogue: every message of it folded into slots, from the first to the last. Pure.

Nothing is stored: the state is worked out again from the messages of each request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from agent.house_sommelier.conversation import Conversation, Exchange
from agent.house_sommelier.data import Kind, load, profiles, rules
from agent.house_sommelier.reading import LIGHT_CARES, NO_WISHES, Care, Change, Wishes, read
from agent.sommelier.wine import Currency, in_euros
from agent.text import Language, pattern

# They end the talk of wine, in later messages as well.
GRAVE: Final[tuple[Literal["crisis", "dependence", "grapes"], ...]] = (
    "crisis", "dependence", "grapes",
)  # fmt: skip
_PRICE: Final = frozenset({"min_price", "max_price", "currency"})
_ABV: Final = frozenset({"min_abv", "max_abv"})
_KIND: Final = frozenset({"styles", "colours", "grapes"})
_TASTE: Final = frozenset(
    {"sweetness", "bodies", "tannins", "acidities", "text", "min_abv", "max_abv"}
)
_PLACE: Final = frozenset({"countries", "regions"})
_NAMED: Final = {
    "dishes": "named_dishes",
    "text": "named_tastes",
    "max_price": "named_price",
    "min_price": "named_price",
}
_GROUPS: Final = (_PRICE, _ABV, _KIND, _PLACE)
_HUES: Final = frozenset({"red", "white", "rose", "orange"})
_OF_A_REGION: Final = frozenset({"sparkling", "fortified"})
_LITTLE: Final = 10.0
_NOTICEABLY: Final = 0.9
_CHEAP_EUR: Final = 12.0
_DEAR_EUR: Final = 30.0
_FEW_WORDS: Final = 4
_CROWD: Final = 8
_SHORT: Final = 8
_MOST_NAME_WORDS: Final = 5
_MOST_SHOWN: Final = 3
_PRICES: Final = pattern(r"([€$£]|(?:\A|\W)[A-Z]{3} )([0-9]{1,6}(?:\.[0-9]{1,2})?)")
_SECTION: Final = pattern(r"(?m)^\*\*[0-9]+\. ")
_SIGNS: Final = {"€": Currency.EUR, "$": Currency.USD, "£": Currency.GBP}


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a conversation.

    `wishes` are what the next search is for, `denied` what no wine may be or have, `shown` the
    wines of the last reply, `choice` those of the last reply that showed several, `first` the very
    first, `seen` and `refused` those of the whole talk, `pointed` the one that the last message
    means, `about` those it asks about, `compared` what was compared, `favoured` what came out of
    that, `topic` the wishes of a question of knowledge, `subject` its subject, `stated` the amounts
    that the person named, `concerned` the persons named where `care` was.
    """

    kind: Kind = "ask"
    wishes: Wishes = NO_WISHES
    denied: frozenset[tuple[str, str]] = frozenset()
    allergens: tuple[str, ...] = ()
    care: Care | None = None
    concerned: frozenset[str] = frozenset()
    is_histamine: bool = False
    language: Language = "en"
    shown: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    pointed: str | None = None
    about: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    favoured: str = ""
    topic: Wishes = NO_WISHES
    subject: str = ""
    guests: int | None = None
    sober: float | None = None
    hours: float | None = None
    occasion: str = ""
    count: int | None = None
    stated: frozenset[float] = frozenset()
    prices: Mapping[str, tuple[float, Currency]] = field(default_factory=dict)
    is_new: bool = False
    kind_before: Kind = "ask"
    insisted: frozenset[str] = frozenset()
    turns: int = 0


def read_state(conversation: Conversation) -> tuple[State, Change]:
    """The state after the last message of a conversation, and that message as a change."""
    state = State()
    for exchange in conversation.before:
        change = read(exchange.request, state.language if state.turns else None)
        state = _answered(heard(state, change), exchange)
    change = read(conversation.request, state.language if state.turns else None)
    return heard(state, change), change


def _answered(state: State, exchange: Exchange) -> State:
    """`state` after the reply of an exchange."""
    ids = exchange.wine_ids
    is_choice = bool(ids) and not set(ids) <= set(state.choice)
    return replace(
        state,
        shown=ids or state.shown,
        choice=ids if is_choice else state.choice,
        first=state.first or ids,
        seen=tuple(dict.fromkeys((*state.seen, *ids))),
        prices=prices_shown(exchange.reply, ids) if is_choice else state.prices,
    )


def heard(state: State, change: Change) -> State:
    """`state` after a message."""
    is_part = state.kind == "quantity" and change.numbers.sober is not None
    if is_part and change.care in LIGHT_CARES:
        change = replace(change, care=None)
    state = _with_facts(state, change)
    pointed = _pointed(state, change)
    state = replace(state, pointed=pointed, about=())
    kind = _kind(state, change)
    state = replace(state, kind=kind, kind_before=state.kind, turns=state.turns + 1)
    match kind:
        case "about":
            return replace(state, about=_about(state, change))
        case "knowledge":
            return _questioned(state, change)
        case "compare":
            return _compared(state, change)
        case "search" | "like" | "same" | "care":
            return _wished(state, change)
        case _:
            return state


def _with_facts(state: State, change: Change) -> State:
    """What holds whatever is asked: language, intolerances, care, guests, stated amounts."""
    languages, numbers = change.languages, change.numbers
    language = state.language
    if languages and (not state.turns or language not in languages):
        language = languages[0]
    occasions = [name for name in ("reception", "party") if change.has(name)]
    return replace(
        state,
        language=language,
        allergens=tuple(dict.fromkeys((*state.allergens, *_tolerated(change)))),
        care=change.care or (None if _is_for_others(state, change) else state.care),
        is_histamine=state.is_histamine or change.intolerance == "histamine",
        concerned=change.people if change.care else state.concerned,
        guests=numbers.guests or state.guests,
        sober=_sober(state, change),
        hours=numbers.hours or state.hours,
        occasion=occasions[0] if occasions else state.occasion,
        stated=state.stated | numbers.stated,
    )


def _is_for_others(state: State, change: Change) -> bool:
    """Whether wine is wanted for somebody whom the care does not concern."""
    return state.care not in GRAVE and bool(change.beneficiaries - state.concerned)


def _sober(state: State, change: Change) -> float | None:
    """How many do not drink, or what share: groups add up, shares and corrections replace."""
    old, new = state.sober, change.numbers.sober
    if new is None or old is None:
        return old if new is None else new
    replaces = min(old, new) < 1 or change.has("replace") or change.numbers.guests is not None
    return new if replaces else old + new


def _tolerated(change: Change) -> tuple[str, ...]:
    """The allergens of a message; "is it vegan?" is no wish for good."""
    return () if change.has("trait", "vegan") and change.is_question else change.allergens


def _pointed(state: State, change: Change) -> str | None:
    """The id of the wine that "the second one" or "the last" means."""
    if change.has("from_start"):
        return state.first[0] if state.first else None
    choice = state.choice
    for ordinal in change.said("ordinal"):
        at = int(ordinal)
        if at == -1:
            return choice[-1] if choice else None
        if at <= len(choice):
            return choice[at - 1]
    return None


def _points_beyond(state: State, change: Change) -> bool:
    ordinals = [int(each) for each in change.said("ordinal")]
    return bool(state.choice) and any(each > len(state.choice) for each in ordinals)


def _kind(state: State, change: Change) -> Kind:
    """What a message wants done, the gravest first."""
    if change.care:
        return _kind_of_care(change)
    if reaction := _kind_of_intolerance(state, change):
        return reaction
    facts, said = _facts(state, change), change.wishes.said
    kind: Kind = next((rule.kind for rule in rules() if rule.holds(facts, said)), "ask")
    wants_free = state.care != "grapes" and "alcohol_free" in change.wishes.styles
    is_for_wine = kind in ("search", "like", "same", "about", "ask") and not wants_free
    return state.care if is_for_wine and state.care in GRAVE else kind


def _kind_of_intolerance(state: State, change: Change) -> Kind | None:
    """What is explained before any wine is named: what labels say of what somebody reacts to."""
    asks = change.is_question or change.has("ask") or change.intolerance == "severe"
    fined = set(change.allergens) & {"egg", "milk", "fish"}
    wishes = change.wishes.said - {"name", "text"} or state.pointed or state.shown
    match change.intolerance:
        case "histamine" if state.kind != "histamine":
            return "histamine"
        case "sulphites" if not wishes:
            return "sulphites"
    return "fining" if fined and asks and not wishes else None


def _kind_of_care(change: Change) -> Kind:
    if change.care in GRAVE:
        return change.care
    return "drunk" if change.care == "driving" and change.has_drunk else "care"


def _facts(state: State, change: Change) -> frozenset[str]:
    """What is so, as the rules of kinds name it."""
    numbers, traits = change.numbers, set(change.said("trait"))
    told = [each for each in change.entities if each in profiles()]
    others = change.has("cue", "cheaper", "dearer", "other") or bool(change.denied)
    described = state.pointed is not None and change.has("ask", "what")
    moves = others or change.has("same") or change.has("refuse")
    moves = moves or (change.has("like") and not described)
    wants_other = numbers.has_price or change.wishes.order or change.has("cue", "cheaper", "other")
    by_scale = change.has("most") and not change.has("subject")
    derived = {
        "grape_allergy": state.care == "grapes",
        "question": change.is_question,
        "plain": not change.unknown,
        "short": change.words <= _FEW_WORDS,
        "guests": numbers.guests is not None,
        "crowd": (numbers.guests or 0) >= _CROWD,
        "is_sober": numbers.sober is not None,
        "for_hours": numbers.hours is not None,
        "has_price": numbers.has_price,
        "two": len(told) > 1,
        "entity": bool(change.entities),
        "denied": bool(change.denied),
        "allergens": bool(change.allergens),
        "other_allergens": change.elsewhere,
        "shown": bool(state.shown),
        "one_shown": len(state.shown) == 1,
        "pointed": state.pointed is not None,
        "points_beyond": _points_beyond(state, change),
        "stays": bool(state.shown) and not moves,
        "may_ask": not wants_other and not by_scale,
        "names_wine": _is_name(state, change),
        "goes_on": _goes_on(state, change),
    }
    groups = load("kinds")["traits"].items()
    return frozenset(
        (
            *(name for name, holds in derived.items() if holds),
            *(name for name, group in groups if traits & set(group.split())),
            *(part for name, value in change.marks for part in (name, f"{name}:{value}")),
            *(f"slot:{slot}" for slot in change.wishes.said),
            f"was:{state.kind}",
        )
    )


def _is_name(state: State, change: Change) -> bool:
    """Whether what looks like the name of a wine is one."""
    name = change.wishes.name
    tells = bool(name) and (not state.wishes.said or name[0].isupper())
    return tells and len(change.unknown) <= _MOST_NAME_WORDS


def _goes_on(state: State, change: Change) -> bool:
    """Whether a message without wishes asks for what was spoken of: "show me one then"."""
    if state.wishes.said and change.count and change.words <= 2 * _SHORT:
        return True
    return change.has("ask", "choose") and bool(state.topic.said or state.favoured)


def _about(state: State, change: Change) -> tuple[str, ...]:
    """The shown wines that a message asks about."""
    if state.pointed:
        return (state.pointed,)
    order = change.wishes.order
    if order and state.prices:
        euros = {wine_id: in_euros(*price) for wine_id, price in state.prices.items()}
        end = min if order == "cheapest" else max
        return (end(euros, key=lambda wine_id: euros[wine_id]),)
    if change.has("ask", "best"):
        return state.choice[:1] or state.shown[:1]
    if change.has("most") or change.has("ask", "which"):
        return state.choice or state.shown
    return state.shown[:_MOST_SHOWN]


def _questioned(state: State, change: Change) -> State:
    subjects = change.said("subject")
    return replace(state, topic=change.wishes, subject=subjects[0] if subjects else "")


def _compared(state: State, change: Change) -> State:
    """What is compared, and which of it a message favours: "which is less tannic?"."""
    told = tuple(each for each in change.entities if each in profiles())[:2]
    compared = told if len(told) > 1 else state.compared
    return replace(
        state,
        compared=compared,
        favoured=favourite(compared, change) or (state.favoured if not told else ""),
        topic=replace(change.wishes, grapes=(), regions=()),
    )


def favourite(compared: Sequence[str], change: Change) -> str:
    """What of two compared is at the end of a scale that was asked for; empty if none was."""
    for most in change.said("most"):
        scale, _, end = most.partition(":")
        if scale in ("body", "tannin", "acidity"):
            best = max if end == "high" else min
            return best(compared, key=lambda name: profiles()[name].profile.rank(scale))
    return ""


def _wished(state: State, change: Change) -> State:
    """The wishes of a message merged with those before."""
    refused = _refused(state, change)
    is_fresh = _is_fresh(state, change)
    old = Wishes() if is_fresh else state.wishes
    if state.subject and change.words <= _SHORT and not is_fresh:
        old = _merged(old, replace(state.topic, name="", text=()), Change())
    wishes = _with_comparison(state, change, _scaled(change))
    if change.has("ask", "choose") and not wishes.said and not old.said:
        wishes = state.topic
    if state.wishes.said and wishes.name and not wishes.name[0].isupper():
        wishes = replace(wishes, name="")
    merged = _merged(old, wishes, change)
    merged = _relative(state, change, merged)
    return replace(
        state,
        wishes=merged,
        denied=_joined(state.denied if not is_fresh else _for_good(state.denied), change),
        refused=refused,
        is_new=is_fresh or refused != state.refused or _moves_on(state, change),
        insisted=_insisted(change, wishes, merged),
        subject="",
        count=change.count or (None if is_fresh else state.count),
    )


def _insisted(change: Change, wishes: Wishes, merged: Wishes) -> frozenset[str]:
    """What must be met if it can: tastes that a message corrects, the place of what is too dear."""
    corrects = change.has("cue", "refine") or change.has("most")
    kept = merged.said & (_PLACE | {"grapes"}) if change.has("cue", "cheaper") else frozenset()
    tastes = wishes.said & {"bodies", "tannins", "acidities", "min_abv"}
    return tastes | kept if corrects else kept


def _moves_on(state: State, change: Change) -> bool:
    """Whether wines are wanted that were not shown yet, rather than fewer of the same."""
    new_dish = bool(change.wishes.dishes) and change.wishes.dishes != state.wishes.dishes
    other = change.has("cue", "other", "cheaper", "dearer") or change.has("talk", "surprise")
    return new_dish or other or change.has("like") or change.has("same")


def _with_comparison(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The grape or region that a comparison favoured: "show me one of those then"."""
    chosen = favourite(state.compared, change) if state.compared else ""
    chosen = chosen or state.favoured
    is_pick = change.has("ask", "choose") and not wishes.grapes and not wishes.regions
    if not is_pick or wishes.dishes or not state.compared or state.kind_before != "compare":
        return wishes
    if not chosen:
        cheaper = change.has("cue", "cheaper") and not state.prices
        order = "cheapest" if cheaper else wishes.order
        return replace(wishes, **_both(state.compared), order=order)
    return replace(wishes, **_both((chosen,)), tannins=())


def _scaled(change: Change) -> Wishes:
    """A message's wishes with what a comparative asks for: "less tannic", "crisper"."""
    ends = load("questions")["ends"]
    values: dict[str, Any] = {
        slot: tuple(value) if isinstance(value, list) else value
        for most in change.said("most")
        for slot, value in ends.get(most, {}).items()
        if slot not in ("bodies", "sweetness") or slot not in change.wishes.said
    }
    return replace(change.wishes, **values)


def _both(compared: Sequence[str]) -> dict[str, Any]:
    """The slots that two compared names fill."""
    regions = tuple(each for each in compared if not profiles()[each].like)
    return {"regions": regions, "grapes": tuple(each for each in compared if each not in regions)}


def _refused(state: State, change: Change) -> tuple[str, ...]:
    """The wines that were turned down: the one pointed at, or all that were just shown."""
    if change.has("refuse"):
        ids = (state.pointed,) if state.pointed else state.shown[:1]
        return tuple(dict.fromkeys((*state.refused, *filter(None, ids))))
    if change.has("cue", "other"):
        return tuple(dict.fromkeys((*state.refused, *state.shown)))
    return state.refused


def _is_fresh(state: State, change: Change) -> bool:
    """Whether a message asks for something new rather than for a change of what was asked."""
    said = change.wishes.said - {"name"}
    if not state.wishes.said or change.has("replace") or change.has("cue") or change.denied:
        return False
    if change.has("like") or change.has("same") or state.pointed:
        return False
    groups = sum(bool(said & group) for group in (_KIND, {"dishes"}, _PLACE, _TASTE, _PRICE))
    again = bool(said & {"styles"}) and bool(state.wishes.said & {"dishes"} and said & {"dishes"})
    return (
        again
        or (groups >= 3 and change.words > _FEW_WORDS)
        or (groups >= 2 and bool(said & {"dishes"}) and change.words > _FEW_WORDS)
    )


def _for_good(denied: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """What is ruled out for the whole talk, whatever is asked for next: grapes and houses."""
    return frozenset(pair for pair in denied if pair[0] in ("grapes", "name", "text"))


def _joined(denied: frozenset[tuple[str, str]], change: Change) -> frozenset[tuple[str, str]]:
    """Earlier exclusions without what is wanted now, and the new ones."""
    wishes = change.wishes
    wanted = {
        (name, value)
        for name in ("grapes", "countries", "regions", "styles")
        for value in getattr(wishes, name)
    }
    wanted |= {("hue", value) for value in (*wishes.styles, *wishes.colours)}
    return (denied - wanted) | change.denied


def _merged(old: Wishes, new: Wishes, change: Change) -> Wishes:
    """`new`, with what `old` says about other things."""
    new = _qualified(old, new, change)
    replaced = _replaced(old, new, change)
    names = old.said - replaced
    names |= {_NAMED[name] for name in names & _NAMED.keys()}
    kept = {name: getattr(old, name) for name in names}
    return replace(new, **kept, only=new.only | (old.only - replaced))


def _qualified(old: Wishes, new: Wishes, change: Change) -> Wishes:
    """A new kind that adds to the old: "sparkling too", "with bubbles", "pink ones, though"."""
    if change.has("also") and new.styles and old.styles and not new.dishes:
        return replace(new, styles=tuple(dict.fromkeys((*old.styles, *new.styles))))
    if change.has("qualifies") and old.styles and set(old.styles) <= _HUES:
        return replace(new, colours=old.styles)
    if old.styles == ("sparkling",) and new.styles == ("rose",):
        return replace(new, styles=(), colours=new.styles)
    return new


def _replaced(old: Wishes, new: Wishes, change: Change) -> set[str]:
    """The slots that a change forgets.

    A new colour forgets the old grape, and the region if that came with "champagne" or "port". A
    new dish forgets the kind of wine that was meant for the old one.
    """
    said = new.said
    replaced = set(said).union(*(group for group in _GROUPS if group & said))
    if new.colours and not new.styles and not new.grapes:
        replaced -= {"styles"}
    if said & (_KIND | {"dishes"}):
        replaced |= {"name", "text"}
    if "styles" in said and _OF_A_REGION & set(old.styles):
        replaced |= {"regions", "countries"}
    if "dishes" in said and old.dishes and set(old.dishes) != set(new.dishes):
        replaced |= _KIND | _TASTE | {"text", "order"}
    denied = {value for name, value in change.denied if name in ("hue", "styles")}
    return replaced | ({"styles"} if denied & set(old.styles) else set())


def _relative(state: State, change: Change, wishes: Wishes) -> Wishes:
    """`wishes` with the limit that "cheaper" or "dearer" means.

    "Cheaper" is below the wine that is pointed at, or else below the cheapest shown; "dearer" is
    above that wine, or else above the old limit or the dearest.
    """
    cheaper = change.has("cue", "cheaper")
    if change.numbers.has_price or not (cheaper or change.has("cue", "dearer")):
        return wishes
    known = dict(state.prices)
    if state.pointed in known:
        known = {str(state.pointed): known[str(state.pointed)]}
    old = state.wishes
    currency = next(iter(known.values()))[1] if known else old.currency or Currency.EUR
    prices = [amount for amount, used in known.values() if used == currency]
    changed = replace(
        wishes, min_price=None, max_price=None, currency=currency, order="", named_price=""
    )
    if cheaper:
        below = _below(min(prices)) if prices else float(round((old.max_price or 17) * 0.7))
        return replace(changed, max_price=below)
    if old.max_price is not None and state.pointed is None:
        return replace(changed, min_price=old.max_price)
    return replace(changed, min_price=float(int(max(prices)) + 1) if prices else _DEAR_EUR)


def _below(amount: float) -> float:
    """Noticeably below an amount, or a cent where little is left."""
    limit = int(amount * _NOTICEABLY) if amount >= _LITTLE else amount - 0.01
    return max(0.0, round(float(limit), 2))


def prices_shown(reply: str, shown: Sequence[str]) -> Mapping[str, tuple[float, Currency]]:
    """The price of each shown wine, as far as a reply tells it.

    A wine's price is the first amount below its name; a reply without such sections counts if it
    has just one amount for each wine.
    """
    sections = _SECTION.split(reply)[1:]
    if sections:
        found = zip(shown, map(_amounts, sections), strict=False)
        return {wine_id: amounts[0] for wine_id, amounts in found if amounts}
    amounts = _amounts(reply)
    return dict(zip(shown, amounts, strict=True)) if len(amounts) == len(shown) else {}


def _amounts(text: str) -> list[tuple[float, Currency]]:
    found = (each.groups() for each in _PRICES.finditer(text))
    known = [(_SIGNS.get(sign) or sign[-4:].strip(), amount) for sign, amount in found]
    return [(float(amount), Currency(code)) for code, amount in known if code in tuple(Currency)]
