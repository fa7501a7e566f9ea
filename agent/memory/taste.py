"""Parse facts about a user's taste from short texts by rules, and describe them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent.fallback.wording import ADJECTIVES, is_vegan, name_value
from agent.formatting import format_money, format_money_range
from agent.i18n import current_language, translate
from agent.markdown import escape
from agent.query_reading.request import read_request
from agent.safety.state import ALLERGIES
from agent.sommelier.building_queries import parse_query
from agent.sommelier.filters import (
    EXCLUDABLE_FILTERS,
    Taste,
    format_taste,
    parse_budget,
    parse_taste,
)
from agent.sommelier.queries import SOFT_FILTERS
from agent.sommelier.vocabulary import OAKY, Currency
from agent.text import pattern
from agent.turn import Fact

OAK_TASTE: Final[Taste] = {"text": (OAKY,)}
MAX_FACT_CHARS: Final = 200
"""The maximum length of a text that states facts, and of the value of a fact."""
STATEMENT_END: Final = pattern(r"[;\n]+")
"""The signs between the statements of a text: "I love Riesling; no oak"."""


def parse_facts(text: str) -> tuple[Fact, ...]:
    """Return the facts that a text states. A statement without a fact becomes a note.

    Semicolons and line ends separate statements: "I love Riesling; no oak". A text whose language
    is not clear is read in the language of the turn: "15 bis 30 Euro".
    """
    facts: list[Fact] = []
    for statement in STATEMENT_END.split(text[:MAX_FACT_CHARS]):
        facts += _parse_statement(statement.strip())
    return keep_latest_facts(facts)


def _parse_statement(text: str) -> Sequence[Fact]:
    if not text:
        return ()
    note = (Fact("note", text, text),)
    if ":" in text:  # "my wife: no eggs" is about somebody else
        return note
    facts = list(find_excluded_facts(text))
    facts += _find_likes(text)
    facts += _find_budget(text)
    return facts or note


def find_excluded_facts(text: str) -> Iterator[Fact]:
    """Yield a fact for each grape, origin, style or allergen that a text excludes, and for oak.

    A dish in the text may exclude wines too, such as sweet ones. There are no facts about these,
    because the user does not exclude them. A text that asks for a vegan wine states no allergy.
    """
    request = read_request(text, current_language())
    for field in EXCLUDABLE_FILTERS:
        for value in request.values(f"without_{field}"):
            taste = format_taste({field: (value,)})
            yield Fact("hate", taste, _to_words(value))
    # Other words of tasting notes, such as "smoky", are excluded for one meal rather than for good.
    if OAKY in request.values("without_text"):
        yield Fact("hate", format_taste(OAK_TASTE), OAKY)
    allergens = request.values("without_allergens")
    if is_vegan(allergens):
        return
    for allergen in allergens:
        if allergen in ALLERGIES:
            yield Fact("allergy", str(allergen), _to_words(allergen))


def find_stated_likes(text: str) -> Iterator[Fact]:
    """Yield a fact for each taste that the user loves, as the text says: "I love Riesling"."""
    request = read_request(text, current_language())
    if not request.states_taste:
        return
    for fact in _find_likes(text):
        taste = parse_taste(fact.value)
        yield Fact("like", fact.value, _name_taste(taste))


def find_new_facts(facts: Iterable[Fact], known: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that are not known. Of equal facts, only the last is returned."""
    known_keys = {fact.key for fact in known}
    new: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        if fact.key not in known_keys:
            new[fact.key] = fact
    return tuple(new.values())


def find_contradicted_facts(fact: Fact, known: Iterable[Fact]) -> Iterator[Fact]:
    """Yield the known facts that are no longer true once `fact` is added."""
    for old in known:
        has_same_value = fact.value == old.value
        are_opposites = {fact.kind, old.kind} == {"hate", "like"}
        are_budgets = fact.kind == "budget" and old.kind == "budget"
        if are_opposites and has_same_value:
            yield old
        if are_budgets and not has_same_value:
            yield old


def keep_latest_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts in order, without those that a later fact repeats or contradicts.

    Of "I love Riesling; no, no more Riesling", the last statement remains.
    """
    kept: list[Fact] = []
    for fact in facts:
        contradicted = list(find_contradicted_facts(fact, kept))
        still_true = []
        for old in kept:
            if old.key != fact.key and old not in contradicted:
                still_true.append(old)
        kept = [*still_true, fact]
    return tuple(kept)


def split_taste(taste: Taste) -> list[str]:
    """Return a taste as values of facts.

    "Merlot, Syrah" makes two values, "full-bodied red" one.
    """
    if not taste:
        return []
    if len(taste) > 1:
        return [format_taste(taste)]
    [(field, values)] = taste.items()
    return [format_taste({field: (value,)}) for value in values]


def _find_likes(text: str) -> Iterator[Fact]:
    """Yield a fact for each taste that a text asks for."""
    inclusions = read_request(text, current_language()).inclusions
    taste = {field: inclusions[field] for field in inclusions if field in SOFT_FILTERS}
    for value in split_taste(taste):
        yield Fact("like", value, text)


def _find_budget(text: str) -> Iterator[Fact]:
    query = parse_query(text, current_language())
    # A budget may always be reached, also if it was said with "under".
    highest = query.max_price or query.below
    budget = format_budget(query.min_price, highest, query.currency)
    if budget:
        yield Fact("budget", budget)


def format_budget(
    low: float | None,
    high: float | None,
    currency: Currency,
) -> str:
    """Return the value of a budget: `40 EUR`, `15-30 EUR` or `60- EUR`, or "" without limits."""
    if low is None and high is None:
        return ""
    if low is None:
        return f"{high:g} {currency}"
    if high is None:
        return f"{low:g}- {currency}"
    low, high = sorted((low, high))
    return f"{low:g}-{high:g} {currency}"


def _to_words(value: object) -> str:
    return str(value).replace("_", " ")


def parse_suggested_fact(kind: str, value: str) -> Fact | None:
    """Return the fact in the data of a button, or None if it is not valid."""
    if kind == "allergy":
        if value in ALLERGIES:
            return Fact("allergy", value, value)
        return None
    taste = parse_taste(value)
    if not taste:
        return None
    if kind == "like":
        return Fact("like", format_taste(taste), _name_taste(taste))
    if kind == "hate":
        words: list[str] = []
        for values in taste.values():
            words += map(_to_words, values)
        original_text = ", ".join(words)
        return Fact("hate", format_taste(taste), original_text)
    return None


def describe_fact(fact: Fact) -> str:
    """Return a phrase that describes a fact to the user, in their own words if possible."""
    if fact.kind == "budget":
        low, high, currency = parse_budget(fact.value)
        budget = _describe_budget(low, high, currency)
        return translate("memory_budget", what=budget)
    if fact.kind == "allergy":
        return translate(f"allergy_{fact.value}")
    taste = parse_taste(fact.value)
    if fact.kind == "hate" and taste == OAK_TASTE:
        return translate("memory_no_oak")
    if fact.kind == "hate" and taste:
        return ", ".join(_describe_hated(taste))
    what = fact.original_text or _name_taste(taste) or fact.value
    if fact.kind == "rated":
        return translate("memory_like", what=what)
    return translate(f"memory_{fact.kind}", what=what)


def _describe_hated(taste: Taste) -> Iterator[str]:
    """Yield a phrase for each value that the user does not like: "no Merlot", "not smoky"."""
    for field, values in taste.items():
        for value in values:
            name = name_value(field, value)
            if field == ADJECTIVES:
                yield translate("fallback_not", name=name)
            else:
                yield translate("memory_hate", what=name)


def _describe_budget(
    low: float | None,
    high: float | None,
    currency: Currency,
) -> str:
    if low is not None and high is not None:
        return format_money_range(low, high, currency)
    if high is not None:
        max_price = format_money(high, currency)
        return translate("prices_to", high=max_price)
    min_price = format_money(low or 0, currency)
    return translate("prices_from", low=min_price)


def _name_taste(taste: Taste) -> str:
    """Return the names of the values of a taste in the current language."""
    names = []
    for field, values in taste.items():
        names += [name_value(field, value) for value in values]
    return ", ".join(names)


def format_added_facts(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms stored facts, or "" if there are none."""
    return _format_facts("memory_learned", facts)


def format_removed_facts(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms deleted facts, or "" if there are none."""
    return _format_facts("memory_unlearned", facts)


def _format_facts(text_key: str, facts: Iterable[Fact]) -> str:
    descriptions = [escape(describe_fact(fact)) for fact in facts]
    if not descriptions:
        return ""
    return translate(text_key, facts=", ".join(descriptions))
