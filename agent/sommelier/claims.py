"""Find claims of a sentence about stock, delivery, allergens and so on that no source supports.

The words of claims are in the table `claims` of each language in `languages/`. Questions, offers
("I can look for a vegan one") and negations ("I do not know whether it is vegan") claim nothing. A
claim in other words than those of the table is not found.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from agent.documents.citations import remove_citations
from agent.documents.shop import find_shop_topics
from agent.i18n import current_language
from agent.languages import load_languages
from agent.numerals import find_numbers, parse_number, replace_number_words
from agent.query_reading.phrases import detect_language
from agent.query_reading.tables import load_rows
from agent.sommelier.attachment import AnyWine
from agent.sommelier.grounding import Grounds
from agent.sommelier.vocabulary import Allergen
from agent.text import Pattern, pattern, split_words

ANY_ENDING: Final = "*"
GAP: Final = "..."
FEW_WORDS: Final = r"(?: \w+){0,5}?"
CRITIC_SCORES: Final = range(80, 101)
"""The numbers that are scores if they stand beside the name of a critic."""
OF_WINES: Final = ("stock", "vegan", "certified", "half", "magnum")
SHOP_TOPICS: Final = {"delivery": "delivery", "opening": "hours", "reservation": ""}
"""The kinds of claims about the shop, each with the topic of the passages that may support it."""
FREE_OF: Final = {f"free of {name}": name for name in Allergen}
KINDS: Final = (*FREE_OF, *OF_WINES, *SHOP_TOPICS, "safe", "critics")
CLAUSE_END: Final = pattern(r"[,;:()–—] ?(?:\D|\z)")
"""The end of a clause: a sign that no digit follows, as in "12,5"."""
ALLERGY: Final = r"\w*(?:allerg|alerg|intoler)\w*"
"""A word for an allergy in any language, folded: "Eiallergie", "alérgico"."""
"""The kinds of claims, by their names in the tables."""


def find_unfounded_claims(sentence: str, grounds: Grounds) -> list[str]:
    """Return the kinds of claims of a sentence that no source supports, such as "delivery"."""
    text = remove_citations(sentence)
    table = _find_table(text)
    if not table or table["unsure"].search(_pad(text)):
        return []
    clauses = _list_sure_clauses(text, table)
    words = _pad(" ".join(clauses))
    kinds = [kind for kind in KINDS if table[kind].search(words)]
    if table["negations"].search(words):  # "it contains no egg" is one too
        kinds = [kind for kind in kinds if kind in FREE_OF]
    unfounded = [kind for kind in kinds if not _is_grounded(kind, text, grounds)]
    if not unfounded and _reassures(text, clauses, grounds, table):
        unfounded.append("allergens")
    return unfounded


def _list_sure_clauses(text: str, table: Mapping[str, Pattern]) -> list[str]:
    """Return the clauses of a sentence that have no word of a condition or doubt."""
    clauses: list[str] = []
    start = 0
    for end in CLAUSE_END.finditer(text):
        clauses.append(text[start : end.start()])
        start = end.start() + 1
    clauses.append(text[start:])
    return [clause for clause in clauses if not table["doubts"].search(_pad(clause))]


def _reassures(
    text: str, clauses: Iterable[str], grounds: Grounds, table: Mapping[str, Pattern]
) -> bool:
    """Return whether a sentence tells a guest with an allergy, unfounded, that all is well.

    "Milk is never used, so serve it without worry" names the allergen or the allergy.
    """
    words = _pad(text)
    is_about_allergies = table["allergy"].search(words) is not None
    is_about_allergens = table["allergens"].search(words) is not None
    if not is_about_allergies and not is_about_allergens:
        return False
    has_asked = _says("allergens", grounds.user_texts) or _says(
        "allergy", grounds.user_texts
    )
    if not is_about_allergies and not has_asked:
        return False
    named = [name for name in Allergen if table[f"name {name}"].search(words)]
    if _lack_all(named, grounds.wines) or _is_unsulphured(text, grounds):
        return False
    for clause in clauses:
        clause_words = _pad(clause)
        rest = table["reassurance"].sub(" ", clause_words)
        if rest != clause_words and not table["negations"].search(rest):
            return True
    return False


def _lack_all(allergens: Sequence[Allergen], wines: Sequence[AnyWine]) -> bool:
    """Return whether wines are known to be free of all these allergens; not if none is named."""
    if not allergens or not wines:
        return False
    for wine in wines:
        if not all(wine.facts.is_known_to_lack(name) for name in allergens):
            return False
    return True


def _is_unsulphured(sentence: str, grounds: Grounds) -> bool:
    """Return whether a sentence says that no sulphites were added, and its wines do too."""
    if not mentions_kind("unsulphured", sentence):
        return False
    facts = [mentions_kind("unsulphured", wine.source_text) for wine in grounds.wines]
    if grounds.is_about_all:
        return all(facts)
    return any(facts)


def is_affirmed(sentence: str) -> bool:
    """Return whether a sentence has no word of a negation, a doubt or a question."""
    table = _find_table(sentence)
    if not table:
        return True
    words = _pad(sentence)
    rows = ("negations", "unsure", "doubts")
    return not any(table[row].search(words) for row in rows)


def find_asked_allergens(text: str) -> list[Allergen]:
    """Return the allergens that a text asks for or excludes: "Does it contain egg?"."""
    return [name for name in Allergen if mentions_kind(f"asked {name}", text)]


def mentions_kind(kind: str, text: str) -> bool:
    """Return whether a text has words of this kind, in any language."""
    words = _pad(text)
    return any(table[kind].search(words) for table in _tables().values())


def _is_grounded(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether a source supports the claim of this kind in a sentence.

    If it is about an allergen, all the wines must lack it. No document says what is safe for this
    guest. A claim about the shop must be in a document that the sentence cites, or come from a
    tool.
    """
    wines = grounds.wines
    if kind == f"free of {Allergen.SULPHITES}" and _is_unsulphured(sentence, grounds):
        return True
    if kind in FREE_OF:
        return all(wine.facts.is_known_to_lack(FREE_OF[kind]) for wine in wines)
    if kind in OF_WINES:
        return _holds_for_wines(kind, sentence, grounds)
    if kind == "safe":
        return _says(kind, grounds.tool_texts)
    numbers = find_numbers(sentence)
    if kind == "critics":
        scores = {number for number in numbers if number in CRITIC_SCORES}
        return scores <= grounds.numbers
    texts = [*grounds.cited_texts, *grounds.tool_texts]
    is_said = SHOP_TOPICS[kind] in find_shop_topics(texts) or _says(kind, texts)
    return is_said and numbers <= grounds.numbers


def _holds_for_wines(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether the claim of a sentence holds for its wines by the catalogue.

    If no wine was found, a sentence about vegan wines or certificates speaks in general.
    """
    if kind == "stock" and not _find_counts(sentence) <= grounds.numbers:
        return False
    if not grounds.wines:
        return kind in {"vegan", "certified"}
    facts = [_has(kind, wine) for wine in grounds.wines]
    holds = any(facts)
    if grounds.is_about_all:
        holds = all(facts)
    if kind == "certified" and not holds:
        return _says(kind, grounds.texts)
    return holds


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
    for table in _tables().values():
        for match in table["counts"].finditer(words):
            counts.add(parse_number(match["count"]))
    return counts


def _says(kind: str, texts: Iterable[str]) -> bool:
    return any(mentions_kind(kind, text) for text in texts)


def _pad(text: str) -> str:
    return f" {' '.join(split_words(text))} "


def _find_table(sentence: str) -> Mapping[str, Pattern]:
    """Return the patterns of the language of a sentence by kind, or none if it has no table."""
    return _tables().get(detect_language(sentence, current_language()), {})


@cache
def _tables() -> Mapping[str, Mapping[str, Pattern]]:
    """Return the patterns of each language by kind.

    Those of "free of" and "asked" are by allergen.
    """
    tables: dict[str, dict[str, Pattern]] = {}
    for code, language in load_languages().items():
        if language.claims is None:
            continue
        any_of: dict[str, str] = {}
        for kind, phrases in language.claims.model_dump().items():
            any_of[kind] = f"(?:{_alternatives(phrases)})"
        table = {kind: pattern(f" {source} ") for kind, source in any_of.items()}
        bottles = rf"(?: \w+)? {any_of['bottles']}"
        in_stock = any_of["stock"]
        table["counts"] = pattern(rf" (?P<count>\d+)(?:{bottles}| {in_stock}) ")
        free_of = any_of["free_of"]
        asked = any_of["asked"]
        all_names: list[str] = []
        for kind, allergen in FREE_OF.items():
            words = ",".join(_allergen_words(allergen, code))
            name = f"(?:{_alternatives(words)})"
            all_names.append(name)
            table[f"name {allergen}"] = pattern(f" {name} ")
            table[kind] = pattern(
                rf" (?:{free_of}(?: \w+){{0,2}}? {name}|{name} free) "
            )
            asked_before = f"{asked}{FEW_WORDS} {name}"
            asked_after = f"{name}{FEW_WORDS} {asked}"
            both = pattern(f" (?:{asked_before}|{asked_after}) ")
            table[f"asked {allergen}"] = both
        table["allergens"] = pattern(f" (?:{'|'.join(all_names)}) ")
        table["allergy"] = pattern(f" {ALLERGY} ")
        tables[code] = table
    return tables


def _alternatives(phrases: str) -> str:
    """Return a pattern of phrases, which commas separate.

    `*` and `...` leave parts of them open.
    """
    parts: list[str] = []
    for phrase in phrases.split(","):
        written = ""
        for word in phrase.split():
            if word == GAP:
                written += FEW_WORDS
                continue
            folded = " ".join(split_words(word))
            written += f" {folded}"
            if word.endswith(ANY_ENDING):
                written += r"\w*"
        parts.append(written.strip())
    return "|".join(parts)


def _allergen_words(allergen: Allergen, language: str) -> tuple[str, ...]:
    """Return the words for an allergen in a language."""
    for row in load_rows():
        if row.meanings == {"allergen": (allergen,)}:
            return row.phrases.get(language, ())
    raise LookupError(f"No row of the tables is only the allergen {allergen}.")
