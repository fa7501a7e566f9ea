"""The state of a dialogue: every message of it folded into slots, from the first to the last. Pure.

Nothing is stored: the state is worked out again from the messages of each request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast, get_args

from agent.care import NO_CARE, REACTIONS, Care, Concern, gravest
from agent.house_sommelier.acts import Context, language_told, with_kind
from agent.house_sommelier.conversation import Conversation, Exchange
from agent.house_sommelier.data import Act, kinds, load, profiles, subjects
from agent.house_sommelier.lexicon import scan, stop_words, tokens
from agent.house_sommelier.reading import NO_WISHES, Change, Wishes, read
from agent.i18n import is_chosen, spoken
from agent.sommelier.wine import Currency
from agent.text import LANGUAGES, Language, pattern, words

GRAVE: Final[tuple[Act, ...]] = ("crisis", "dependence", "grapes")
"""They end the talk of wine, in later messages as well."""
_PRICE: Final = frozenset({"min_price", "max_price", "currency"})
_ABV: Final = frozenset({"min_abv", "max_abv"})
_KIND: Final = frozenset({"styles", "colours", "grapes"})
_TASTE: Final = frozenset({"sweetness", "bodies", "tannins", "acidities", "text"}) | _ABV
_PLACE: Final = frozenset({"countries", "regions"})
_NAMED: Final = {
    "dishes": "named_dishes",
    "text": "named_tastes",
}
_GROUPS: Final = (_PRICE, _ABV, _KIND, _PLACE)
_HUES: Final = frozenset({"red", "white", "rose", "orange"})
_POURED: Final = ("sparkling", "white", "rose", "red")
_OF_A_REGION: Final = frozenset({"sparkling", "fortified"})
_FOR_GOOD: Final = frozenset({"grapes", "name", "text", "regions", "countries", "styles"})
_DIRECTIONS: Final = frozenset({"lighter", "fuller", "drier", "sweeter", "softer", "fresher"})
_CHAT: Final = frozenset({"complaint", "rude", "hello", "thanks"})
_NAMED_KIND: Final = frozenset({"styles", "grapes", "regions"})
_ASKING: Final = frozenset({"search", "stock", "fits", "size"})
"""Kinds that look for nothing where nothing says what."""
_MOST_GUESTS: Final = 500
_LITTLE: Final = 10.0
_NOTICEABLY: Final = 0.9
_LEAST_GIFT: Final = 0.6
_DEAR_EUR: Final = 30.0
_FEW_WORDS: Final = 4
_PRICES: Final = pattern(r"([€$£]|[A-Z]{3} )([0-9]{1,6}(?:\.[0-9]{1,2})?)")
_SECTION: Final = pattern(r"(?m)^\*\*[0-9]+\. ")
_SIGNS: Final = {"€": Currency.EUR, "$": Currency.USD, "£": Currency.GBP}


def _of_person() -> Language:
    """The language that is spoken, as far as there are words in it; else English."""
    return next((each for each in LANGUAGES if each == spoken()), "en")


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a conversation.

    `wishes` are what the next search is for, `denied` what no wine may be or have, `shown` the
    wines of the last reply, `choice` those of the last reply that showed several, `first` the very
    first, `seen` and `refused` those of the whole talk, `told` what the choice's reply said of each
    wine, `pointed` those that the last message means, `about` those it asks about, `compared` what
    was compared, `favoured` what came out of that, `courses` whether the dishes follow each other,
    `topic` the wishes of a question of knowledge, `subject` its subject, `concerned` the persons
    named where `care` was.
    """

    act: Act = "ask"
    act_before: Act = "ask"
    context: Context = "start"
    wishes: Wishes = NO_WISHES
    denied: frozenset[tuple[str, str]] = frozenset()
    allergens: tuple[str, ...] = ()
    care: Concern | None = None
    concerned: frozenset[str] = frozenset()
    reacts: frozenset[str] = frozenset()
    language: Language = field(default_factory=_of_person)
    shown: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    pointed: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    favoured: str = ""
    courses: bool = False
    topic: Wishes = NO_WISHES
    subject: str = ""
    swapped: tuple[str, ...] = ()
    """What of the choice is to be replaced, while the rest stays."""
    is_below: bool = False
    """Whether the price limit is only what "cheaper" made of the prices shown."""
    basis: Wishes | None = None
    """What the choice was for, while one of it is looked for anew."""
    guests: int | None = None
    sober: float | None = None
    hours: float | None = None
    occasion: str = ""
    kinds: tuple[str, ...] = ()
    case: int | None = None
    """For how many bottles together the price was given."""
    count: int | None = None
    is_new: bool = False
    insisted: frozenset[str] = frozenset()
    turns: int = 0

    @property
    def prices(self) -> Mapping[str, tuple[float, Currency]]:
        """The price of each wine of the choice, as far as the reply tells it."""
        return {wine_id: found for wine_id, said in self.told.items() if (found := _price(said))}


def _price(text: str) -> tuple[float, Currency] | None:
    for found in _PRICES.finditer(text):
        code = _SIGNS.get(found[1]) or found[1].strip()
        if code in tuple(Currency):
            return float(found[2]), Currency(code)
    return None


def read_state(conversation: Conversation, care: Care | None = None) -> tuple[State, Change]:
    """The state after the last message of a conversation, and that message as a change.

    `care` is what is known of who wrote the last; in a group the others told of themselves.
    """
    known = care or NO_CARE
    state = State(care=gravest(known.held), reacts=known.allergies | known.reactions)
    for exchange in conversation.before:
        change = _read(exchange.request, state, NO_CARE if known.in_group else None)
        state = _answered(heard(state, change), exchange)
    change = _read(conversation.request, state, known if known.in_group else None)
    return heard(state, change), change


def _read(text: str, state: State, care: Care | None) -> Change:
    change = with_kind(read(text, state.language if state.turns else None), state.context)
    change = change if care is None else replace(change, care=care)
    ill_of = (state.reacts | change.care.reactions).intersection(REACTIONS)
    wishes = replace(
        change.wishes,
        styles=tuple(each for each in change.wishes.styles if each not in ill_of),
        colours=tuple(each for each in change.wishes.colours if each not in ill_of),
    )
    out = change.denied.union(("styles", each) for each in ill_of)
    return replace(change, wishes=wishes, denied=out) if ill_of else change


def _answered(state: State, exchange: Exchange) -> State:
    """`state` after the reply of an exchange."""
    ids = exchange.wine_ids
    is_choice = bool(ids) and not set(ids) <= set(state.choice)
    sections = _SECTION.split(exchange.reply)[1:]
    return replace(
        state,
        context="wines" if ids or (state.act == "about" and state.choice) else "told",
        shown=ids or state.shown,
        choice=ids if is_choice else state.choice,
        first=state.first or ids,
        seen=tuple(dict.fromkeys((*state.seen, *ids))),
        told=dict(zip(ids, sections, strict=False)) if is_choice else state.told,
    )


def heard(state: State, change: Change) -> State:
    """`state` after a message."""
    state = _with_facts(state, change)
    if state.basis is not None:
        state = replace(state, wishes=state.basis, basis=None, swapped=(), count=None)
    state = replace(state, pointed=_pointed(state, change), about=())
    act = _act(state, change)
    state = replace(state, act=act, act_before=state.act, turns=state.turns + 1)
    match act:
        case "about" | "pick":
            return replace(state, about=_about(state, change))
        case "knowledge":
            return _questioned(state, change)
        case "compare":
            return _compared(state, change)
        case "search" | "like" | "same" | "care":
            return _wished(state, change)
        case "foods":
            return replace(state, topic=_with_topic(state, change.wishes))
        case _:
            return state


def _with_facts(state: State, change: Change) -> State:
    """What holds whatever is asked: language, intolerances, care, guests."""
    languages, numbers, care = change.languages, change.numbers, change.care
    told = language_told(change, state.language if state.turns else None)
    stays = not languages or state.language in languages
    is_theirs = not state.turns and state.language != "en" and stays
    if is_theirs or (is_chosen() and state.language == spoken()):
        told = state.language  # these words do not speak against it, or may not
    language = told or (state.language if state.turns or stays else languages[0])
    occasions = [name for name in ("reception", "party") if change.has(name)]
    if change.has("meal"):
        occasions = ["meal"]
    concern = _concern(state, change)
    ruled_out = change.denied if change.kind in ("complaint", "rude") else frozenset()
    asks_of_vegan = change.has("trait", "vegan") and change.is_question
    allergens = (*state.allergens, *(() if asks_of_vegan else change.allergens))
    return replace(
        state,
        language=language,
        denied=state.denied | ruled_out,
        allergens=tuple(dict.fromkeys(allergens)),
        care=concern,
        concerned=care.people if care.gravest else state.concerned,
        reacts=state.reacts | care.allergies | care.reactions | ({care.intolerance} - {""}),
        guests=numbers.guests or _bare_number(change) or state.guests,
        sober=_sober(state, change),
        hours=numbers.hours or state.hours,
        occasion=occasions[0] if occasions else state.occasion,
        kinds=_kinds_poured(state, change),
        case=numbers.bottles if numbers.shared else state.case,
    )


def _kinds_poured(state: State, change: Change) -> tuple[str, ...]:
    """The kinds of wine that a party is to be split into, without those denied since."""
    wishes = change.wishes
    told = [each for each in (*wishes.styles, *wishes.colours) if each in _POURED]
    left = {value for name, value in change.denied if name in ("hue", "styles")}
    kinds = told if change.kind == "quantity" and len(told) > 1 and not left else state.kinds
    return tuple(each for each in dict.fromkeys(kinds) if each not in left)


def _bare_number(change: Change) -> int | None:
    """The number of guests in a message that names a number alone: "make it 48"."""
    numbers = change.numbers
    if change.kind != "quantity" or numbers.has_price or numbers.hours or numbers.bottles:
        return None
    told = [int(word) for word in words(change.text) if word.isdecimal() and len(word) < 4]
    told = [] if numbers.sober else told
    return told[0] if len(told) == 1 and 1 < told[0] <= _MOST_GUESTS else None


def _concern(state: State, change: Change) -> Concern | None:
    """Why no alcohol is offered: what holds goes on, unless wine is wanted for somebody else.

    "Five drive", "half do not drink" tells of guests, not of who asks.
    """
    told, numbers = change.care.gravest, change.numbers
    counts = numbers.guests is not None or change.has("ask", "quantity") or change.has("half")
    if told and told not in GRAVE and numbers.sober is not None:
        told = None if counts or state.act == "quantity" else told
    if (
        not told
        and not counts
        and numbers.sober is None
        and change.has("abstains", "yes")
        and not change.denied
    ):
        told = "health"
    for_others = bool(change.care.beneficiaries - state.concerned) and state.care not in GRAVE
    return told or (None if for_others else state.care)


def _sober(state: State, change: Change) -> float | None:
    """How many do not drink, or what share: groups add up, shares and corrections replace."""
    old, new = state.sober, change.numbers.sober
    if new is None or old is None:
        return old if new is None else new
    replaces = min(old, new) < 1 or change.has("replace") or change.numbers.guests is not None
    return new if replaces else old + new


def _pointed(state: State, change: Change) -> tuple[str, ...]:
    """The ids of the wines that "the second one", "the Italian" or a producer's name means."""
    choice = state.choice
    if change.has("from_start"):
        return state.first[:1]
    if (change.has("swap") or change.has("refuse")) and change.wishes.order and state.prices:
        end = min if change.wishes.order == "cheapest" else max
        return (end(state.prices, key=lambda wine_id: state.prices[wine_id][0]),)
    places = [int(each) for each in change.said("ordinal")]
    # "The second red" counts among the reds.
    styles = {*change.wishes.styles}
    of_kind = tuple(each for each in choice if styles & {*style_of(state, each)})
    among = of_kind if of_kind and len(of_kind) >= max(places, default=0) else choice
    if found := [among[at - (at > 0)] for at in places if among and at <= len(among)]:
        return tuple(dict.fromkeys(found))
    if change.kind == "swap" and len(choice) > 1 and not change.definite:
        return choice[-1:]
    labels = {
        wine_id: {token.stem for token in tokens(told.partition("**")[0])} - stop_words("houses")
        for wine_id, told in state.told.items()
    }
    called = {each.stem for word in change.unknown for each in tokens(word) if len(each.stem) > 3}
    named = tuple(wine_id for wine_id, label in labels.items() if called & label)
    if named or not change.definite:
        return named if len(named) < len(choice) or len(choice) == 1 else ()
    kinds = {
        pair for pair in change.definite if pair[0] in ("grapes", "countries", "regions", "hue")
    }
    alike = tuple(
        wine_id
        for wine_id, told in state.told.items()
        if kinds and kinds & concepts(_about_itself(told))
    )
    return alike if len(alike) == 1 < len(choice) else ()


def _about_itself(told: str) -> str:
    """What a reply says a wine is, without its notes: place, kind, grapes."""
    name, _, rest = told.partition("**")
    place, _, description = rest.strip().partition("\n")
    return f"{name} / {place.partition(' · ')[0]} / {description.partition('. ')[0]}"


def style_of(state: State, wine_id: str) -> tuple[str, ...]:
    """The colour or style of a wine of the choice, as the reply told it; empty if it did not."""
    told = concepts(_about_itself(state.told.get(wine_id, "")))
    kinds = [value for name in ("styles", "hue") for field, value in told if field == name]
    return tuple(kinds[:1])


def concepts(text: str) -> set[tuple[str, str]]:
    """What a reply's words about a wine say, in whatever language they are."""
    spans = scan(tokens(text), None)
    return {(each.field, value) for s in spans for each in s.meanings for value in each.values}


def _act(state: State, change: Change) -> Act:
    """What a message wants done, the gravest first."""
    told = change.care.gravest
    if told and state.care == told:
        if told in {"crisis", "dependence"}:
            return told
        return "drunk" if told == "driving" and change.care.has_drunk else "care"
    if reaction := _of_a_reaction(state, change):
        return reaction
    act = _wanted(state, change)
    for_wine = act in ("search", "like", "same", "about", "pick", "foods", "ask", "taken")
    wants_free = "alcohol_free" in change.wishes.styles
    grave = "grapes" if "grapes" in state.reacts else state.care if state.care in GRAVE else None
    if for_wine and grave and not (wants_free and grave == "dependence"):
        return "crisis" if grave == "crisis" else "grapes" if grave == "grapes" else "dependence"
    return act


def _wanted(state: State, change: Change) -> Act:
    """What a message wants done by its kind, or by its wishes where its kind is not sure."""
    said = change.wishes.said - {"name", "text"}
    if change.kind in ("", "unclear"):
        talk = next((each for each in change.said("talk") if each in get_args(Act)), "ask")
        names = said or change.denied or change.wishes.name
        talk = "knowledge" if change.has("subject") or change.has("symptom") else talk
        return "search" if names else cast("Act", talk)
    if certain := _certain(state, change):
        return certain
    kind = kinds()[change.kind]
    explained = state.act == "knowledge" and change.kind in ("stock", "foods")
    explained = explained and state.context == "told" and not state.pointed
    is_new = not state.shown or explained or _is_of_another(state, change)
    act = kind.alone if is_new else kind.shown
    goes_on = state.act == "compare" and not state.pointed
    sums = state.guests is not None and change.has("trait", "total")
    adds_up = act == "quantity" or change.kind == "total"
    prices = adds_up and change.numbers.has_price and not (sums or _counts(change))
    rules_out = bool(change.denied) and not change.is_question
    if prices or (rules_out and act in ("compare", "knowledge")):
        return "search"
    if act == "compare" or (goes_on and (act == "about" or change.kind in ("pick", "most"))):
        return _held_against(state, change)
    if act == "search" and change.kind in _ASKING and not _is_request(state, change):
        return "ask"
    return _by_what_it_says(act, state, change)


def _certain(state: State, change: Change) -> Act | None:
    """What the words of a message say for certain, whatever its kind."""
    said = change.wishes.said - {"name", "text"}
    beyond = any(int(each) > len(state.choice) > 0 for each in change.said("ordinal"))
    if beyond and state.context == "wines":
        return "which"
    if change.numbers.sober is not None and state.guests is not None and not said:
        return "quantity"
    looks = (change.kind == "search" and said) or change.numbers.has_price
    if change.has("symptom") and not (looks or change.has("ask", "choose") or state.pointed):
        return "knowledge"
    if change.has("talk", "task", "steer") and not said:
        return "off_topic"
    asked = change.kind in ("like", "why", "price", "knowledge", "compare")
    if change.has("cue", "cheaper", "dearer") and not asked:
        return "search"
    is_end = any(name == "most" for name, _ in change.definite)
    return "about" if state.shown and is_end else None


def _by_what_it_says(act: Act, state: State, change: Change) -> Act:
    """An act that the slots of a message may make another."""
    said = change.wishes.said - {"name", "text"}
    kind, asks = change.kind, act in ("about", "knowledge")
    measures = change.has("subject", "measures") and not _counts(change)
    for_what = (
        change.purpose and change.has("ask", "choose") and not (said or change.has("subject"))
    )
    others: tuple[tuple[object, Act], ...] = (
        (act in ("knowledge", "foods") and for_what, "ask"),
        (act == "like" and change.has("same"), "same"),
        (act in ("knowledge", "quantity") and measures and change.has("litres"), "quantity"),
        (act == "quantity" and measures, "knowledge"),
        (asks and kind == "allergens" and change.allergens and not change.is_question, "search"),
        (act == "about" and kind == "fits" and said & _KIND and not state.pointed, "search"),
        (act == "taken" and change.has("trait"), "about"),
        (act == "taken" and said and not said <= {"dishes"}, "like"),
        (act == "foods" and not (said & _NAMED_KIND or state.topic.said), "knowledge"),
        (act in _CHAT and said and not change.entities, "search"),
    )
    return next((other for holds, other in others if holds), act)


def _counts(change: Change) -> bool:
    """Whether a message tells of guests, hours or bottles, or its words ask how many."""
    numbers = change.numbers
    told = (numbers.guests, numbers.sober, numbers.hours, numbers.bottles)
    asks = "quantity" in change.said("ask")[1:] or change.has("many")
    return asks or any(each is not None for each in told)


def _is_of_another(state: State, change: Change) -> bool:
    """Whether a question names a grape or a region that none of the shown wines has."""
    if not change.entities or state.pointed:
        return False
    known = set().union(*(concepts(_about_itself(each)) for each in state.told.values()))
    return not {value for _, value in known} & {*change.entities}


def _held_against(state: State, change: Change) -> Act:
    """Two grapes or places are compared; of what nothing is known, the library may tell."""
    told = [each for each in change.entities if each in profiles()]
    return "compare" if len(told) > 1 or len(state.compared) > 1 else "knowledge"


def _is_request(state: State, change: Change) -> bool:
    """Whether anything in a message says what wine to look for."""
    tells = change.wishes.said or change.denied or change.allergens or change.elsewhere
    moves = any(map(change.has, ("cue", "refuse", "most", "elsewhere_from", "talk", "less_of")))
    goes_on = state.wishes.said or state.topic.said or state.compared
    if change.purpose and not tells:
        return False
    return bool(
        tells
        or moves
        or goes_on
        or _wants_it(state, change)
        or change.words > _FEW_WORDS + (not change.unknown)
    )


def _of_a_reaction(state: State, change: Change) -> Act | None:
    """What is explained before any wine: what labels say of what somebody reacts to."""
    care = change.care
    asks = change.is_question or change.has("ask") or care.intolerance == "severe"
    fined = set(change.allergens) & {"egg", "milk", "fish"}
    wishes = change.wishes.said - {"name", "text"} or state.pointed or state.shown
    if "grapes" in (care.intolerance, *care.allergies):
        return "grapes"
    if "histamine" in (care.intolerance, *care.allergies) and state.act != "histamine":
        return "histamine"
    if care.intolerance == "sulphites" and not wishes:
        return "sulphites"
    if change.has("safe") and state.reacts & {"sulphites", "severe", "histamine"}:
        return "histamine" if "histamine" in state.reacts else "sulphites"
    asks = asks or change.has("safe")
    fined = fined or (set(state.allergens) if change.has("safe") else set())
    if fined and asks and not change.wishes.said - {"name", "text"}:
        return "fining"
    return None


def _about(state: State, change: Change) -> tuple[str, ...]:
    """The shown wines that a message asks about."""
    if change.has("ask", "compare"):
        return state.pointed if len(state.pointed) > 1 else state.choice[:2]
    several = (
        change.has("most")
        or change.has("trait", "total")
        or change.has("ask", "which")
        or bool(change.wishes.order)
    )
    if state.pointed:
        return state.pointed
    return state.choice if several or state.act == "pick" else state.shown


def _questioned(state: State, change: Change) -> State:
    """A question of knowledge; a further one with no subject is of the one before."""
    subjects = (*change.said("symptom"), *change.said("subject"))
    goes_on = state.act_before == "knowledge" and not subjects
    topic = state.topic if goes_on and not change.wishes.said else change.wishes
    return replace(state, topic=topic, subject=(*subjects, state.subject if goes_on else "")[0])


def _compared(state: State, change: Change) -> State:
    """What is compared, and which of it a message favours: "which is less tannic?"."""
    told = tuple(each for each in change.entities if each in profiles())[:2]
    old = tuple(
        each for each in (*state.wishes.grapes, *state.wishes.regions) if each in profiles()
    )
    compared = told if len(told) > 1 else state.compared or old[:2]
    return replace(
        state,
        compared=compared,
        favoured=favourite(compared, change) or (state.favoured if not told else ""),
        topic=replace(change.wishes, grapes=(), regions=(), countries=(), styles=()),
    )


def favourite(compared: Sequence[str], change: Change) -> str:
    """What of two compared is at the end of a scale that was asked for; empty if none was."""
    for most in change.said("most"):
        scale, _, end = most.partition(":")
        if scale in ("body", "tannin", "acidity"):
            best = max if end == "high" else min
            return best(compared, key=lambda name: profiles()[name].profile.rank(scale))
    return ""


def _with_topic(state: State, wishes: Wishes) -> Wishes:
    """The wishes of a message, or else of what was spoken of."""
    return (
        wishes
        if wishes.said & (_KIND | _PLACE)
        else state.topic
        if state.topic.said
        else state.wishes
    )


def _wished(state: State, change: Change) -> State:
    """The wishes of a message merged with those before."""
    refused = _refused(state, change)
    abroad = change.has("elsewhere_from") or ("elsewhere_from", "country") in change.denied
    if abroad and not (state.pointed or change.has("like") or change.has("same")):
        state, change = _from_elsewhere(state, change)
    is_fresh = _is_fresh(state, change)
    old = NO_WISHES if is_fresh else state.wishes
    if state.act_before in ("knowledge", "compare", "foods") and not is_fresh:
        old = _merged(old, replace(state.topic, name="", text=()), Change())
    old = _with_what_was_paid(state, old)
    wishes = _with_comparison(state, change, _scaled(state, change))
    wishes = _of_the_same_kind(state, change, wishes)
    if change.has("swap") and state.pointed:
        wishes = replace(wishes, order="")
    wishes = _of_subject(state, change, wishes)
    if state.act in ("like", "same"):
        old = replace(old, name="")
    if state.wishes.said and wishes.name and not wishes.name[0].isupper():
        wishes = replace(wishes, name="")
    if old.name and not old.name[0].isupper():
        old = replace(old, name="")
    wishes = _relative(state, change, _merged(old, _of_a_case(state, change, wishes), change))
    if narrowed := tuple(each for each in wishes.bodies if each in old.bodies):
        # "Even lighter" stays within what was light before.
        wishes = replace(wishes, bodies=narrowed)
    if change.has("cue", "gift") and wishes.max_price and wishes.min_price is None:
        wishes = replace(wishes, min_price=round(wishes.max_price * _LEAST_GIFT, 2))
    if change.has("swap") and state.pointed and len(wishes.dishes) > 1 and not change.wishes.dishes:
        at = min(state.choice.index(state.pointed[0]), len(wishes.dishes) - 1)
        named = wishes.named_dishes[at : at + 1]
        wishes = replace(wishes, dishes=wishes.dishes[at : at + 1], named_dishes=named)
    kept = {pair for pair in state.denied if pair[0] in _FOR_GOOD} if is_fresh else state.denied
    swapped = state.pointed if change.has("swap") and len(state.choice) > 1 else ()
    one = 1 if change.has("swap") and state.pointed else None
    return replace(
        state,
        wishes=wishes,
        swapped=swapped,
        is_below=change.has("cue", "cheaper") and not change.numbers.has_price,
        basis=state.wishes if swapped else None,
        denied=_joined(frozenset(kept), change),
        refused=refused,
        is_new=is_fresh or refused != state.refused or _moves_on(state, change),
        insisted=_insisted(change, wishes),
        subject="",
        courses=change.has("courses") or (state.courses and not change.wishes.dishes),
        count=change.count or one or (None if is_fresh else state.count),
    )


def _with_what_was_paid(state: State, old: Wishes) -> Wishes:
    """The wishes before, "cheaper" as what was shown for it: that may have cost more."""
    if not (state.is_below and old.max_price and state.prices):
        return old
    dearest = max(price for price, _ in state.prices.values())
    return replace(old, max_price=max(old.max_price, dearest))


def _of_a_case(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The wishes with a new price for all the bottles shared among them: "and up to 80?"."""
    numbers = change.numbers
    if not (state.case and numbers.has_price) or numbers.shared or change.has("each"):
        return wishes
    low, high = (
        None if each is None else round(each / state.case, 2)
        for each in (wishes.min_price, wishes.max_price)
    )
    return replace(wishes, min_price=low, max_price=high)


def _of_subject(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The wishes with the name of what was just explained: "do you have any?"."""
    known = _wants_it(state, change) and not state.topic.said
    return replace(wishes, name=subjects()[state.subject].asked[0]) if known else wishes


def _wants_it(state: State, change: Change) -> bool:
    """Whether a message wants to see what was just explained: "do you have any?"."""
    asks = change.kind == "stock" or (change.kind == "search" and change.has("ask", "choose"))
    return asks and state.subject in subjects() and not change.wishes.said


def _from_elsewhere(state: State, change: Change) -> tuple[State, Change]:
    """What "from anywhere else" rules out: the place spoken of, or else the guest's own country.

    "Nothing foreign" asks for just that country.
    """
    home = load("grammar")["home"].get(state.language)
    old = state.wishes
    if home and ("elsewhere_from", "country") in change.denied:
        return state, replace(change, wishes=replace(change.wishes, countries=(home,)))
    name = "regions" if old.regions else "countries"
    places = getattr(old, name) or ((home,) if home else ())
    left = frozenset((name, place) for place in places)
    bare = replace(old, regions=(), countries=())
    return replace(state, wishes=bare), replace(change, denied=change.denied | left)


def _insisted(change: Change, merged: Wishes) -> frozenset[str]:
    """What must be met if it can: the place and grape it names, tastes that a message corrects."""
    corrects = change.has("cue", "refine") or change.has("most")
    named = merged if change.has("cue") else change.wishes
    kept = named.said & (_PLACE | {"grapes"}) if not change.has("or_like") else frozenset()
    tastes = change.wishes.said & {"bodies", "tannins", "acidities", "min_abv"}
    return tastes | kept if corrects else kept


def _moves_on(state: State, change: Change) -> bool:
    """Whether wines are wanted that were not shown yet, rather than fewer of the same."""
    new_dish = bool(change.wishes.dishes) and change.wishes.dishes != state.wishes.dishes
    other = change.has("cue") or change.has("talk", "surprise") or change.has("most")
    return new_dish or other or change.has("like") or change.has("same")


def _with_comparison(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The grape or region that a comparison favoured: "show me one of those then"."""
    if change.wishes.said & {"grapes", "regions", "dishes"} or not state.compared:
        return wishes
    if state.act_before != "compare":
        return wishes
    places = [int(each) for each in change.said("ordinal")]
    named = [state.compared[at - 1] for at in places if 0 < at <= len(state.compared)]
    chosen = favourite(state.compared, change) or state.favoured
    names = tuple(named) or ((chosen,) if chosen else state.compared)
    regions = tuple(each for each in names if not profiles()[each].like)
    grapes = tuple(each for each in names if each not in regions)
    cheaper = change.has("cue", "cheaper") and not state.prices and not chosen
    order = "cheapest" if cheaper else wishes.order
    return replace(wishes, regions=regions, grapes=grapes, order=order, tannins=())


def _of_the_same_kind(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The wishes with the kind of all that was shown: "lighter than these" is of their colour."""
    varies = change.has("cue", "cheaper", "dearer", "refine", "other") or change.has("most")
    if not varies or (wishes.said | state.wishes.said) & (_KIND | {"dishes"}) or not state.told:
        return wishes
    kinds = [concepts(_about_itself(told)) for told in state.told.values()]
    for kind in ("styles", "hue"):
        shared = {value for name, value in set.intersection(*kinds) if name == kind}
        if len(shared) == 1:
            return replace(wishes, styles=tuple(shared))
    return wishes


def _scaled(state: State, change: Change) -> Wishes:
    """A message's wishes with what a comparative asks for: "less tannic", "crisper"."""
    ends = load("questions")["ends"]
    less = (f"{state.subject}:low",) if change.has("less_of") else ()
    values: dict[str, Any] = {
        slot: tuple(value) if isinstance(value, list) else value
        for most in (*change.said("most"), *less)
        for slot, value in ends.get(most, {}).items()
        if (change.kind in _DIRECTIONS and not _agrees(change.wishes, slot, value))
        or slot not in ("bodies", "sweetness")
        or slot not in change.wishes.said
    }
    return replace(change.wishes, **values)


def _agrees(wishes: Wishes, slot: str, value: Any) -> bool:
    """Whether what a message says of a slot has any of what its direction asks for."""
    return isinstance(value, list) and bool({*getattr(wishes, slot)} & {*value})


def _refused(state: State, change: Change) -> tuple[str, ...]:
    """The wines that were turned down: the one pointed at, or all that were just shown."""
    turned_down: tuple[str, ...] = ()
    if change.has("refuse") or change.has("swap"):
        turned_down = state.pointed or state.shown[:1]
    elif change.has("cue", "other"):
        turned_down = state.shown
    return tuple(dict.fromkeys((*state.refused, *turned_down)))


def _is_fresh(state: State, change: Change) -> bool:
    """Whether a message asks for something new rather than for a change of what was asked."""
    said = change.wishes.said - {"name"}
    changes = ("replace", "cue", "like", "same", "also", "swap", "most")
    if not state.wishes.said or change.denied or state.pointed or any(map(change.has, changes)):
        return False
    groups = sum(bool(said & group) for group in (_KIND, {"dishes"}, _PLACE, _TASTE, _PRICE))
    again = bool(said & {"styles"}) and bool(state.wishes.said & {"dishes"} and said & {"dishes"})
    if change.words <= _FEW_WORDS:
        return again
    return again or groups >= 3 or (groups >= 2 and bool(said & {"dishes"}))


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
    kept: dict[str, Any] = {name: getattr(old, name) for name in names}
    for name in kept.keys() & {"grapes", "countries", "regions"}:
        kept[name] = tuple(each for each in kept[name] if (name, each) not in change.denied)
    return replace(new, **kept, only=new.only | (old.only - replaced))


def _qualified(old: Wishes, new: Wishes, change: Change) -> Wishes:
    """A new kind that adds to the old: "sparkling too", "with bubbles", "pink ones, though"."""
    if old.styles == ("sparkling",) and new.styles == ("rose",):
        return replace(new, styles=(), colours=new.styles)
    if change.has("also") and new.styles and old.styles and not new.dishes:
        return replace(new, styles=tuple(dict.fromkeys((*old.styles, *new.styles))))
    if "alcohol_free" in new.styles:
        return replace(
            new,
            colours=new.colours or tuple(each for each in old.styles if each in _HUES),
            text=new.text or (("sparkling",) if "sparkling" in old.styles else ()),
        )
    is_sober = old.styles == ("alcohol_free",) and "styles" in old.only
    if is_sober and set(new.styles) <= _HUES and not change.has("others"):
        return replace(new, styles=old.styles, colours=new.styles, only=new.only | {"styles"})
    if change.has("qualifies") and old.styles and set(old.styles) <= _HUES:
        return replace(new, colours=old.styles)
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
    if said & {"styles", "grapes", "dishes", "regions", "countries"}:
        replaced |= {"name", "text"}
    if "styles" in said and _OF_A_REGION & set(old.styles):
        replaced |= {"regions", "countries"}
    if "alcohol_free" in new.styles:
        replaced |= _PLACE | _KIND | _TASTE
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
    known = {each: known[each] for each in state.pointed if each in known} or known
    old = state.wishes
    currency = next(iter(known.values()))[1] if known else old.currency or Currency.EUR
    prices = [amount for amount, used in known.values() if used == currency]
    changed = replace(wishes, min_price=None, max_price=None, currency=currency, order="")
    if change.has("cue", "half") and prices:
        return replace(changed, max_price=float(round(sum(prices) / len(prices) / 2)))
    if cheaper:
        below = _below(min(prices)) if prices else float(round((old.max_price or 17) * 0.7))
        return replace(changed, max_price=below)
    if old.max_price is not None and not state.pointed:
        return replace(changed, min_price=old.max_price)
    return replace(changed, min_price=float(int(max(prices)) + 1) if prices else _DEAR_EUR)


def _below(amount: float) -> float:
    """Noticeably below an amount, or a cent where little is left."""
    limit = int(amount * _NOTICEABLY) if amount >= _LITTLE else amount - 0.01
    return max(0.0, round(float(limit), 2))
