"""Find what a sentence affirms of stock, delivery, allergens and the like that no source says.

The words for it are the table `claims` of each language in `languages/`. Questions, offers ("I can
look for a vegan one") and negations ("I do not know whether it is vegan") affirm nothing. What is
said in other words than those of the table is not found.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.documents.shop import find_shop_topics
from agent.i18n import current_language
from agent.languages import load_languages
from agent.numerals import find_numbers, parse_number, replace_number_words
from agent.query_reading.phrases import detect_language
from agent.query_reading.tables import load_rows
from agent.sommelier.attachment import AnyWine
from agent.sommelier.vocabulary import Allergen
from agent.text import Pattern, pattern, split_words

ANY_ENDING: Final = "*"
GAP: Final = "..."
FEW_WORDS: Final = r"(?: \w+){0,5}?"
CRITIC_SCORES: Final = range(80, 101)
"""The numbers beside the name of a critic that are scores."""
FACTS_OF_WINES: Final = frozenset({"stock", "vegan", "certified", "half", "magnum"})
SHOP_TOPICS: Final = {"delivery": "delivery", "opening": "hours"}
"""What is affirmed of the shop, by the topics of the passages that may say it."""
KINDS: Final = frozenset(
    "stock delivery opening reservation safe vegan certified half magnum critics".split()
)
"""What is affirmed, by the names in the tables; lacking an allergen is affirmed by its name."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What may ground a sentence: wines, other texts, and the numbers of all of them.

    If the sentence `is_about_all`, it must hold for each of the wines, otherwise for one of them.
    `tool_texts` come from other tools than those of wines and documents.
    """

    wines: Sequence[AnyWine]
    texts: Sequence[str]
    tool_texts: Sequence[str]
    numbers: AbstractSet[float]
    is_about_all: bool


def find_unfounded_claims(sentence: str, grounds: Grounds) -> list[str]:
    """Return the kinds of what a sentence affirms and no source says, such as "delivery"."""
    words = _pad(sentence)
    table = _patterns().get(detect_language(sentence, current_language()), {})
    if not table or table["unsure"].search(words) or table["general"].search(words):
        return []
    lacking = [name for name in Allergen if table[f"free_of_{name}"].search(words)]
    unfounded = [f"free of {name}" for name in lacking if not _all_lack(name, grounds)]
    if table["negations"].search(words):
        return unfounded
    affirmed = [
        kind for kind, known in table.items() if kind in KINDS and known.search(words)
    ]
    return unfounded + [
        kind for kind in affirmed if not _is_grounded(kind, sentence, grounds)
    ]


def is_affirmed(sentence: str) -> bool:
    """Return whether a sentence has no word of a negation, a doubt or a question."""
    words = _pad(sentence)
    table = _patterns().get(detect_language(sentence, current_language()), {})
    return not any(
        table[hedge].search(words) for hedge in ("negations", "unsure") if table
    )


def find_asked_allergens(text: str) -> list[Allergen]:
    """Return the allergens that a text asks for or excludes: "Does it contain egg?"."""
    words = _pad(text)
    tables = _patterns().values()
    return [
        name
        for name in Allergen
        if any(table[f"asked_{name}"].search(words) for table in tables)
    ]


def mentions_kind(kind: str, text: str) -> bool:
    """Return whether a text has words of this kind, in any language."""
    words = _pad(text)
    return any(table[kind].search(words) for table in _patterns().values())


def _all_lack(allergen: Allergen, grounds: Grounds) -> bool:
    """Return whether all the wines lack an allergen; without wines, nothing is said of one."""
    return all(wine.facts.is_known_to_lack(allergen) for wine in grounds.wines)


def _is_grounded(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether a source says what a sentence affirms of this kind."""
    if kind in FACTS_OF_WINES:
        return _holds_for_wines(kind, sentence, grounds)
    numbers = find_numbers(sentence)
    if kind == "critics":
        return {
            number for number in numbers if number in CRITIC_SCORES
        } <= grounds.numbers
    if kind in SHOP_TOPICS:
        is_said = SHOP_TOPICS[kind] in find_shop_topics(grounds.texts)
        return is_said and numbers <= grounds.numbers
    # No document says what was reserved for this guest, or is safe for them.
    return _says(kind, grounds.tool_texts)


def _holds_for_wines(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether what a sentence affirms holds for its wines, by the catalogue."""
    if kind == "stock" and not _find_counts(sentence) <= grounds.numbers:
        return False
    if (
        not grounds.wines
    ):  # what is said of vegan wines or certificates is said in general
        return kind in {"vegan", "certified"}
    facts = [_has(kind, wine) for wine in grounds.wines]
    if all(facts) if grounds.is_about_all else any(facts):
        return True
    return kind == "certified" and _says(kind, grounds.texts)


def _has(kind: str, wine: AnyWine) -> bool:
    """Return whether the catalogue says this of a wine."""
    offers = [offer for offer in wine.facts.offers if offer.in_stock]
    if kind == "stock":
        return bool(offers)
    if kind == "vegan":
        return wine.facts.vegan == "yes"
    if kind == "certified":
        return mentions_kind(kind, wine.source_text)
    return any(offer.kind == kind for offer in offers)


def _find_counts(sentence: str) -> set[float]:
    """Return the numbers of bottles that a sentence names: 12 in "12 bottles in stock"."""
    words = _pad(replace_number_words(sentence))
    counts: set[float] = set()
    for table in _patterns().values():
        for match in table["counts"].finditer(words):
            counts.add(parse_number(match["count"]))
    return counts


def _says(kind: str, texts: Iterable[str]) -> bool:
    return any(mentions_kind(kind, text) for text in texts)


def _pad(text: str) -> str:
    return f" {' '.join(split_words(text))} "


@cache
def _patterns() -> Mapping[str, Mapping[str, Pattern]]:
    """Return the patterns of each kind by language; of `free_of` and `asked`, by allergen."""
    patterns: dict[str, dict[str, Pattern]] = {}
    for code, language in load_languages().items():
        claims = language.claims
        if claims is None:
            continue
        table = {
            kind: _compile(phrases) for kind, phrases in claims.model_dump().items()
        }
        bottles, stock = _alternatives(claims.bottles), _alternatives(claims.stock)
        table["counts"] = pattern(
            rf" (?P<count>\d+)(?:(?: \w+)? (?:{bottles})| (?:{stock})) "
        )
        free_of, asked = _alternatives(claims.free_of), _alternatives(claims.asked)
        for name in Allergen:
            allergen = _alternatives(",".join(_allergen_words(name, code)))
            table[f"free_of_{name}"] = pattern(
                rf" (?:(?:{free_of})(?: \w+){{0,2}}? (?:{allergen})|(?:{allergen}) free) "
            )
            before, after = rf"(?:{asked}){FEW_WORDS}", rf"{FEW_WORDS} (?:{asked})"
            table[f"asked_{name}"] = pattern(
                rf" (?:{before} (?:{allergen})|(?:{allergen}){after}) "
            )
        patterns[code] = table
    return patterns


def _compile(phrases: str) -> Pattern:
    return pattern(rf" (?:{_alternatives(phrases)}) ")


def _alternatives(phrases: str) -> str:
    """Return a pattern of phrases, separated by commas, of which `*` and `...` leave parts open."""
    parts: list[str] = []
    for phrase in phrases.split(","):
        written = ""
        for word in phrase.split():
            ending = r"\w*" if word.endswith(ANY_ENDING) else ""
            folded = " ".join(split_words(word))
            written += FEW_WORDS if word == GAP else f" {folded}{ending}"
        parts.append(written.strip())
    return "|".join(parts)


@cache
def _allergen_words(allergen: Allergen, language: str) -> tuple[str, ...]:
    """Return the words for an allergen in a language."""
    for row in load_rows():
        if row.meanings == {"allergen": (allergen,)}:
            return row.phrases.get(language, ())
    return ()
