"""What a message wants done: the first rule of one list that holds, the gravest first. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast, get_args

from agent.care.concerns import Concern
from agent.house_sommelier.data import SCALE_OF, Act, kinds, profiles
from agent.house_sommelier.merging import KIND, wants_it
from agent.house_sommelier.reading import Change
from agent.house_sommelier.state import GRAVE, State, about_itself, concepts
from agent.house_sommelier.table import chooses, is_prose, refers, speaks_of_it
from agent.house_sommelier.topics import ASKED, CERTAIN, is_likely
from agent.house_sommelier.verdicts import traits

_FOR_WINE: Final = frozenset(("search", "like", "about", "pick", "foods", "ask", "taken"))
_CHAT: Final = frozenset({"complaint", "rude", "hello", "thanks"})
_IN_NEED: Final = frozenset({"crisis", "dependence"})
"""In which whoever says thanks, or anything but a wish, is listened to and sold nothing."""
_NAMED_KIND: Final = frozenset({"styles", "grapes", "regions"})
_ASKING: Final = frozenset({"search", "stock", "fits", "size", "yes"})
"""Kinds that look for nothing where nothing says what."""
_NAMES: Final = frozenset({"grapes", "regions"})
_PRICES: Final = frozenset({"min_price", "max_price", "currency"})
_UNLESS_CERTAIN: Final = frozenset({"search", "ask", "like", "off_topic", "help"})
"""Acts that a message may look like that tells of a fault: "my wine smells of vinegar"."""
_OF_NUMBERS: Final = frozenset({"total", "price", "quantity", "versus", "foods", "take", "pick"})
"""Kinds that a question in a talk may look like: "how much ice do I take?"."""
_OPEN_TO_A_MINOR: Final = frozenset({"ask", "which", "complaint", "rude", "taken", "off_topic"})
"""Acts by which somebody under age may press for a wine: "come on, my sister buys it"."""
_FINED: Final = frozenset({"egg", "milk", "fish"})
_SOME_WORDS: Final = 3
_FEW_WORDS: Final = 4
_MANY_WORDS: Final = 8


@dataclass(frozen=True)
class _Case:
    """A message where it stands."""

    state: State
    change: Change

    @property
    def kind(self) -> str:
        """The kind that the classifier tells; "search" of wishes where it is not sure."""
        return self.change.kind

    @cached_property
    def said(self) -> frozenset[str]:
        """The slots that tell of a wine, whatever it is called."""
        return self.change.wishes.said - {"name", "text"}

    @property
    def asks(self) -> bool:
        """Whether a message is a question, with its sign or without."""
        change = self.change
        return change.is_question or change.has("copula") or change.has("ask", "why", "what")

    @property
    def is_limited(self) -> bool:
        """Whether a message says what a wine may cost, or how strong it may be."""
        return bool(self.said & {"min_price", "max_price", "min_abv", "max_abv"})

    @cached_property
    def act(self) -> Act:
        """The act that the kind comes to, where wines were shown or where none were."""
        kind = kinds()[self.kind]
        return kind.alone if not self.state.shown or self.is_of_another else kind.shown

    @cached_property
    def is_of_another(self) -> bool:
        """Whether a question is of something else than the wines that were shown."""
        state, change = self.state, self.change
        if state.pointed:
            return False
        if state.act == "knowledge" and state.context == "told" and self.kind in ("stock", "foods"):
            return True
        # "Do I chill the red?" after white ones is of none of these.
        hues = {value for name, value in change.definite if name in ("hue", "styles")}
        named = hues.union(change.entities)
        known = set().union(*(concepts(about_itself(each)) for each in state.told.values()))
        return bool(named) and not {value for _, value in known} & named

    @property
    def counts(self) -> bool:
        """Whether a message tells of guests, hours or bottles, or its words ask how many."""
        numbers = self.change.numbers
        told = (numbers.guests, numbers.sober, numbers.hours, numbers.bottles)
        return self.asks_number or any(each is not None for each in told)

    @property
    def asks_number(self) -> bool:
        """Whether the words of a message ask how many."""
        return self.change.has("many") or "quantity" in self.change.said("ask")[1:]

    @property
    def is_request(self) -> bool:
        """Whether anything in a message says what wine to look for."""
        state, change = self.state, self.change
        tells = change.wishes.said or change.denied or change.allergens or change.elsewhere
        goes_on = state.wishes.said or state.topic.said or state.names
        if change.purpose and not tells:
            return change.words > _MANY_WORDS
        is_long = change.words > _FEW_WORDS + (not change.unknown)
        is_open = change.has("ask", "nice") or change.has("talk") or wants_it(state, change)
        return bool(tells or goes_on or is_open or is_long)


def concern_of(change: Change) -> Concern | None:
    """The gravest concern that a message tells of.

    Somebody else who has given up drinking is offered what holds no alcohol, as a guest is.
    """
    told = change.care.gravest
    is_of_another = "dependence" not in change.care.own | change.care.held
    drinks_none = change.kind == "sober" or change.has("abstains") or change.numbers.sober
    is_guest = told == "dependence" and is_of_another and drinks_none
    return "medication" if is_guest else told


def decide(state: State, change: Change) -> Act:
    """What a message wants done; to whom wine is no help there is no talk of wine."""
    case = _Case(state, change)
    told = concern_of(change)
    if told and state.care == told:
        if told in {"crisis", "dependence"}:
            return cast("Act", told)
        return "care"
    act = next(act for holds, act in _RULES if holds(case))
    found = act(case) if callable(act) else act
    if found in _OPEN_TO_A_MINOR and state.is_minor:
        return "care"
    grave = "grapes" if "grapes" in state.reacts else state.care if state.care in GRAVE else None
    if grave in _IN_NEED and (found in _CHAT or (found == "ask" and not change.is_question)):
        return "listening"
    is_free = grave == "dependence" and "alcohol_free" in change.wishes.styles
    return cast("Act", grave) if grave and found in _FOR_WINE and not is_free else found


def _reacts_to(case: _Case, what: str) -> bool:
    return what in case.change.care.allergies


def _asks_if_safe(case: _Case, *what: str) -> bool:
    return case.change.has("safe") and bool(case.state.reacts & {*what})


def _asks_of_fining(case: _Case) -> bool:
    """Whether it is asked what wines of egg, milk or fish; of a wine that is pointed at, not."""
    state, change = case.state, case.change
    asks = change.is_question or change.has("ask")
    safe = change.has("safe")
    fined = _FINED & set(change.allergens) or (safe and state.allergens)
    is_of_shown = state.pointed or (case.kind in ("vegan", "allergens") and state.shown)
    return bool(fined) and (asks or safe) and not case.said and not is_of_shown


def _is_beyond(case: _Case) -> bool:
    """Whether a wine is pointed at that was not shown: "the fifth"."""
    shown = len(case.state.choice)
    beyond = any(int(each) > shown > 0 for each in case.change.said("ordinal"))
    return beyond and case.state.context == "wines"


def _is_question_of_topic(case: _Case) -> bool:
    """Whether a message is certainly of a topic of wine, or asks of one."""
    top = case.change.topics[0].name if case.change.topics else ""
    is_open = case.act in _UNLESS_CERTAIN or case.kind in _OF_NUMBERS
    is_open |= case.act == "about" and kinds()[case.kind].topic not in ("", top)
    is_of_plan = case.state.slots and case.change.has("cue")
    is_counted = case.kind == "quantity" and case.change.numbers.guests is not None
    is_of_shown = case.state.shown and case.kind == "temperature" and not case.change.entities
    is_chilled = is_of_shown and case.change.words <= _FEW_WORDS + 1
    if is_of_plan or is_counted or is_chilled or not is_open:
        return False
    if "measures" in case.change.subjects or _limits(case):
        return False
    if case.kind == "search" and _asks_of_topic(case):
        return True
    looks = case.kind == "search" and case.said
    return is_likely(case.change.topics, CERTAIN) and not looks


def _asks_of_topic(case: _Case) -> bool:
    """Whether a message asks of wine itself, also where it names a kind of wine or a price.

    Of 2,300 messages that look for wine seven ask so, of 400 other ones with a kind in them most.
    """
    change = case.change
    asks = (case.asks or change.has("trait")) and change.words >= _FEW_WORDS
    is_of_somebody = change.purpose or change.has("people") or change.care.gravest
    is_wish = _limits(case) or is_of_somebody or case.said & {"dishes", "order"}
    return asks and not is_wish and is_likely(change.topics, ASKED)


def _limits(case: _Case) -> bool:
    """Whether a message tells what a wine may cost or must not be, or wants one chosen."""
    change = case.change
    is_priced = change.numbers.has_price and bool(case.said - _PRICES)
    is_priced |= change.numbers.max_abv is not None
    is_limited = is_priced or change.denied or change.allergens
    return bool(is_limited or change.has("ask", "choose") or case.state.pointed)


def _is_for_a_dish(case: _Case) -> bool:
    """Whether a question is what to open with a dish: "which red is safe for me with a steak?"."""
    asks = case.change.has("ask", "choose") and case.said & KIND
    return case.act == "knowledge" and bool(asks) and "dishes" in case.said


def _asks_what_and_how_many(case: _Case) -> bool:
    """Whether a dish for so many is told, and both what to open and how many bottles is asked."""
    is_party = case.change.numbers.guests is not None and "dishes" in case.said
    return case.act == "quantity" and is_party and case.change.has("ask", "choose", "what", "which")


def _is_of_guests(case: _Case) -> bool:
    """Whether it is told who of the guests drinks nothing, and nothing is wanted for them."""
    is_told = case.change.numbers.sober is not None and case.state.guests is not None
    is_counted = case.state.act == "quantity" and case.kind == "sober" and not case.asks
    return is_told and (not case.said or is_counted)


def _is_of_no_wine(case: _Case) -> bool:
    change = case.change
    return change.has("talk", "task", "steer") and not (case.said or change.denied)


def _goes_on_asking(case: _Case) -> bool:
    """Whether a question of knowledge is asked of something else: "and for white?", "and Cava"."""
    change, is_prose = case.change, case.state.context == "told"
    if not change.has("adds") or change.has("ask", "choose") or change.words > _FEW_WORDS:
        return False
    is_named = any(each in profiles() for each in change.entities)
    asks = change.is_question or is_named
    is_after = is_prose and case.state.act in ("knowledge", "compare")
    return is_after and asks and not change.numbers.has_price


def _changes_plan(case: _Case) -> bool:
    """Whether a message tells of other guests or bottles for what was put together before."""
    state, numbers = case.state, case.change.numbers
    told = (numbers.guests, numbers.sober, numbers.bottles)
    changes = any(each is not None for each in told) or case.change.has("remove")
    changes |= bool(state.slots and (case.change.dropped or case.change.denied))
    is_plan = (state.slots or state.bottles) and state.told and state.context == "wines"
    asks = case.asks_number or (case.kind == "quantity" and case.change.is_question)
    return bool(is_plan and changes) and not asks


def _asks_plan(case: _Case) -> bool:
    """Whether a message wants several wines put together, for guests or by their number."""
    numbers, slots = case.change.numbers, case.change.slots
    told = numbers.guests or case.state.guests or any(each.bottles for each in slots)
    is_open = not case.kind or case.act in ("quantity", "knowledge")
    return len(slots) > 1 and bool(told) and is_open and not case.change.has("copula")


def names_it(change: Change) -> bool:
    """Whether a message only says what wine a question was of: "it's a Chianti"."""
    is_short = change.words <= _FEW_WORDS + 1 and not change.is_question
    says_more = change.has("ask") or change.numbers.has_price or change.denied
    return bool(is_short and change.entities and change.has("deictic") and not says_more)


def _tells_of_which(case: _Case) -> bool:
    """Whether a message says of which wine the question before it was."""
    state = case.state
    is_after = state.act == "knowledge" and state.context == "told" and bool(state.subjects)
    return is_after and names_it(case.change)


def _is_priced_wish(case: _Case) -> bool:
    """Whether a sum is the limit of a wish, not what is to be worked out."""
    is_sum = case.change.has("trait", "total") and not case.change.numbers.shared
    sums = case.state.guests is not None and is_sum
    adds_up = case.act == "quantity" or case.kind == "total"
    return adds_up and case.change.numbers.has_price and not (sums or case.counts)


def _chooses_from_a_list(case: _Case) -> bool:
    """Whether one wine of a restaurant's list is to be chosen: "they have Malbec or Gamay"."""
    known = [each for each in case.change.entities if each in profiles()]
    return case.change.has("listed") and len(known) > 1


def _is_comparison(case: _Case) -> bool:
    state, change = case.state, case.change
    is_of_it = case.kind in ("pick", "most", "details", "versus", "why")
    is_of_it |= change.has("ask", "which") and case.said == {"dishes"}
    goes_on = is_prose(state) and not state.pointed and is_of_it
    is_choice = case.act == "search" and change.has("versus") and change.has("ask", "compare")
    told = is_choice and len(change.entities) > 1
    return bool(case.act == "compare" or told or (goes_on and not change.has("one_of_each")))


def _held_against(case: _Case) -> Act:
    """Two grapes or places are compared; of what nothing is known, the library may tell."""
    told = [each for each in case.change.entities if each in profiles()]
    known = [each for each in case.state.names if each in profiles()]
    compares = case.asks or case.change.marks.count(("ask", "compare")) > 1
    is_wish = case.change.has("ask", "choose") or not compares
    if case.said and is_wish and max(len(told), len(known)) < 2:
        return "search"
    return "compare" if len(told) > 1 or len(known) > 1 else "knowledge"


def _unsure(case: _Case) -> Act:
    """What a message of no sure kind wants, by its words."""
    change = case.change
    if case.state.pointed:
        return "taken" if "take" in refers(change) else "about"
    asks = _asks_of_topic(case)
    if not asks and (case.said or change.denied or change.allergens or change.wishes.name):
        return "search"
    goes_on = case.state.act == "knowledge" and case.state.context == "told"
    if asks or change.subjects or (goes_on and change.words >= _SOME_WORDS):
        return "knowledge"
    return cast("Act", next((each for each in change.said("talk") if each in get_args(Act)), "ask"))


def _asks_of_it(case: _Case) -> bool:
    """Whether a short question is how a wine that was shown is: "and is it very acidic?"."""
    state, change = case.state, case.change
    asks = change.is_question and change.words <= _MANY_WORDS
    is_named = change.entities or change.denied or change.purpose or case.said - SCALE_OF.keys()
    wants = change.has("ask", "choose") or change.has("most") or change.has("cue")
    if not (asks and state.shown and state.context == "wines") or is_named or wants:
        return False
    return bool(traits(change)) and speaks_of_it(change.text)


def _is_wish_beside(case: _Case) -> bool:
    """Whether a greeting or thanks holds a wish; a complaint only where it asks for another."""
    change = case.change
    tells_fault = change.denied or case.said & SCALE_OF.keys()
    asks = tells_fault or any(map(change.has, ("cue", "replace", "most"))) or case.asks
    is_open = change.has("ask", "choose") or change.words <= _FEW_WORDS + 1
    is_wish = case.act in _CHAT and case.said and not case.said & _NAMES
    return bool(is_wish and (asks or is_open or case.kind != "complaint"))


def _asks_for_some(case: _Case) -> bool:
    """Whether a question of nothing known asks for wine: "is there anything I can drink?"."""
    change = case.change
    asks = change.has("ask", "choose") and not change.has("ask", "what", "why")
    return case.act == "knowledge" and asks and not (change.subjects or change.entities)


def _is_for_something_unknown(case: _Case) -> bool:
    change = case.change
    return bool(change.purpose and not (case.said or change.subjects))


Rule = tuple[Callable[[_Case], object], Act | Callable[[_Case], Act]]

_RULES: Final[tuple[Rule, ...]] = (
    # What somebody reacts to is explained before any wine.
    (lambda c: _reacts_to(c, "grapes"), "grapes"),
    (lambda c: _reacts_to(c, "histamine") and c.state.act != "histamine", "histamine"),
    (lambda c: "sulphites" in c.change.care.allergies and c.asks, "sulphites"),
    (lambda c: _asks_if_safe(c, "histamine"), "histamine"),
    (lambda c: _asks_if_safe(c, "sulphites", "severe"), "sulphites"),
    (_asks_of_fining, "fining"),
    # What words say for certain, whatever the kind.
    (_chooses_from_a_list, "compare"),
    (_tells_of_which, "knowledge"),
    (lambda c: c.change.has("one_of_each") and len(c.state.names) > 1, "search"),
    (lambda c: chooses(c.state, c.change), "pick"),
    (lambda c: _changes_plan(c) or _asks_plan(c), "search"),
    (_asks_of_it, "about"),
    (_is_of_guests, "quantity"),
    (lambda c: c.kind in ("", "unclear"), _unsure),
    (_is_beyond, "which"),
    (_is_question_of_topic, "knowledge"),
    (_goes_on_asking, "knowledge"),
    (_is_of_no_wine, "off_topic"),
    (lambda c: c.state.shown and any(name == "most" for name, _ in c.change.definite), "about"),
    # What the kind comes to, beside what the message says.
    (_is_priced_wish, "search"),
    (
        lambda c: (
            c.change.denied and not c.asks and c.act in _CHAT | {"compare", "knowledge", "quantity"}
        ),
        "search",
    ),
    (lambda c: c.act == "knowledge" and c.is_limited and not c.asks, "search"),
    (lambda c: _is_for_a_dish(c) or _asks_for_some(c), "search"),
    (_asks_what_and_how_many, "search"),
    (_is_comparison, _held_against),
    (lambda c: c.act == "search" and c.kind in _ASKING and not c.is_request, "ask"),
    (lambda c: c.act in ("knowledge", "foods") and _is_for_something_unknown(c), "ask"),
    (
        lambda c: (
            c.act in ("about", "knowledge", "off_topic")
            and c.change.allergens
            and not (c.asks or c.state.pointed)
        ),
        "search",
    ),
    (
        lambda c: c.act == "about" and c.kind == "fits" and c.said & KIND and not c.state.pointed,
        "search",
    ),
    (
        lambda c: c.act == "foods" and not (c.said & _NAMED_KIND or c.state.topic.said),
        "knowledge",
    ),
    (_is_wish_beside, "search"),
    (lambda _: True, lambda c: c.act),
)
