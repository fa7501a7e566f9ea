"""Find claims of a sentence about stock, delivery, allergens and so on that no source supports.

The words of claims are in the table `claims` of each language in `languages/`. Questions, offers
("I can look for a vegan one") and negations ("I do not know whether it is vegan") claim nothing. A
claim in other words than those of the table is not found. Counts of bottles are found in more
languages, by `bottles` of each.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from agent.documents.citations import remove_citations
from agent.documents.shop import find_shop_topics
from agent.numerals import find_numbers, parse_number, replace_number_words
from agent.sommelier.attachment import AnyWine
from agent.sommelier.claim_phrases import (
    FREE_OF,
    ClaimPhrases,
    WordedText,
    detect_claim_phrases,
    fold_words,
    load_bottle_counts,
    load_claim_phrases,
)
from agent.sommelier.grounding import Grounds
from agent.sommelier.sums import PACK_SIZES
from agent.sommelier.vocabulary import Allergen
from agent.text import Pattern, pattern

OF_WINES: Final = ("stock", "vegan", "certified", "half", "magnum")
SHOP_TOPICS: Final = {"delivery": "delivery", "opening": "hours", "reservation": ""}
"""The kinds of claims about the shop, each with the topic of the passages that may support it."""
AFFIRMED_KINDS: Final = (*OF_WINES, *SHOP_TOPICS, "safe")
"""The kinds of claims that a negation denies, as they are called in the tables."""
CLAUSE_END: Final = pattern(r"[,;:()–—] ?(?:\D|\z)")
"""The end of a clause: a sign that no digit follows, as in "12,5"."""
LIST_END: Final = pattern(r"[;:()–—] ?(?:\D|\z)")
"""The end of a list of allergens, which may have commas: "free of egg, milk and fish"."""
ALLERGY: Final = pattern(r" \w*(?:allerg|alerg|intoler)\w* ")
"""A word for an allergy in any language, folded: "Eiallergie", "alérgico"."""
WITHOUT_FISH: Final = (Allergen.SULPHITES, Allergen.EGG, Allergen.MILK)
ADVISED_COUNTS: Final = frozenset({1, 2, 3, *PACK_SIZES})
"""The counts of bottles that a sentence may name without a source: "take two bottles"."""


class Claim(NamedTuple):
    """A claim: its kind, such as "delivery", and the words that make it."""

    kind: str
    words: str


def find_unfounded_claims(sentence: str, grounds: Grounds) -> list[Claim]:
    """Return the claims of a sentence that no source supports."""
    text = remove_citations(sentence)
    unfounded = _find_unfounded_counts(text, grounds)
    phrases = detect_claim_phrases(text)
    if phrases is None or phrases.has("unsure", text):
        return unfounded
    clauses = _list_sure_clauses(text, phrases)
    claims = [*_find_denials(text, phrases), *_find_claims(", ".join(clauses), phrases)]
    for claim in claims:
        if not _is_grounded(claim.kind, text, grounds):
            unfounded.append(claim)
    if not unfounded:
        unfounded += _find_absent_allergens(clauses, grounds, phrases)
    if not unfounded:
        unfounded += _find_reassurances(clauses, grounds, phrases)
    return unfounded


def _find_denials(text: str, phrases: ClaimPhrases) -> Iterator[Claim]:
    """Yield the claims of a text that a wine lacks an allergen: "it contains no egg"."""
    for part in _split(text, LIST_END):
        sure_part = ", ".join(_list_sure_clauses(part, phrases))
        yield from _find_kinds(FREE_OF, sure_part, phrases)


def _find_claims(text: str, phrases: ClaimPhrases) -> Iterator[Claim]:
    """Yield the other claims of a text. With a negation, as in "not in stock", it has none."""
    if not phrases.has("negations", text):
        yield from _find_kinds(AFFIRMED_KINDS, text, phrases)


def _find_kinds(
    kinds: Iterable[str], text: str, phrases: ClaimPhrases
) -> Iterator[Claim]:
    """Yield a claim for each of these kinds that a text has words of."""
    words = WordedText(text)
    for kind in kinds:
        match = phrases.by_kind[kind].search(words.folded)
        if match is not None:
            yield Claim(kind, words.quote(match))


def _list_sure_clauses(text: str, phrases: ClaimPhrases) -> list[str]:
    """Return the clauses of a text, each up to a word of a condition or doubt.

    "If you want a magnum" claims nothing, and "we have magnums if you like" does.
    """
    sure: list[str] = []
    for clause in _split(text, CLAUSE_END):
        words = WordedText(clause)
        doubt = phrases.by_kind["doubts"].search(words.folded)
        if doubt is None:
            sure.append(clause)
        else:
            sure.append(words.cut_before(doubt))
    return sure


def _split(text: str, mark: Pattern) -> list[str]:
    """Return the parts of a text between marks of one character, such as commas."""
    parts: list[str] = []
    start = 0
    for end in mark.finditer(text):
        parts.append(text[start : end.start()])
        start = end.start() + 1
    return [*parts, text[start:]]


def _find_absent_allergens(
    clauses: Iterable[str], grounds: Grounds, phrases: ClaimPhrases
) -> Iterator[Claim]:
    """Yield the clauses that deny an allergen which the guest avoids: "egg never goes in".

    A clause with "I" or "not all" denies something else: "I do not recommend wines with egg". A
    document that the sentence cites may deny it in general.
    """
    if grounds.cited_texts:
        return
    allergens = _list_deniable(grounds)
    for clause in clauses:
        is_denial = phrases.has("negations", clause)
        if not is_denial or phrases.has("other_subjects", clause):
            continue
        words = WordedText(clause)
        for allergen in allergens:
            name = phrases.names[allergen].search(words.folded)
            if name is not None and not _is_known_to_be_lacking(allergen, grounds):
                yield Claim(f"free of {allergen}", words.quote(name))


def _list_deniable(grounds: Grounds) -> list[Allergen]:
    """Return the allergens for which any denial is a claim.

    A wine may "not smell of sulphur" or "not suit fish", so fish must be named with an allergy.
    """
    allergens = {Allergen.EGG, Allergen.MILK} & _list_avoided(grounds)
    for text in (*grounds.user_texts, *grounds.notes):
        words = fold_words(text)
        if ALLERGY.search(words) and _names_fish(words):
            allergens.add(Allergen.FISH)
    if Allergen.FISH in grounds.allergies:
        allergens.add(Allergen.FISH)
    return sorted(allergens)


def _names_fish(words: str) -> bool:
    """Return whether folded words name fish in any language."""
    tables = load_claim_phrases().values()
    return any(phrases.names[Allergen.FISH].search(words) for phrases in tables)


def _is_about_avoided_allergens(
    text: str, grounds: Grounds, phrases: ClaimPhrases
) -> bool:
    """Return whether a text is about an allergy, or names an allergen that the guest avoids.

    "Milk is never used, so serve it without worry" names one. Nothing is wrong with it if the wines
    are known to lack this allergen.
    """
    words = fold_words(text)
    named = [name for name in Allergen if phrases.names[name].search(words)]
    is_about_avoided = not _list_avoided(grounds).isdisjoint(named)
    if not is_about_avoided and not ALLERGY.search(words):
        return False
    return not _lack_all(named, grounds.wines) and not _is_unsulphured(text, grounds)


def _list_avoided(grounds: Grounds) -> set[str]:
    """Return the remembered allergies of the guest, and the allergens that they named.

    They name one in a message, or in what they asked to be remembered, if they ask for it or have a
    negation: "no eggs". A guest with "eggs Benedict" avoids none.

    If a message speaks of an allergy, these are all allergens, for the name may be in other words.
    Fish in a message is left out, because most guests who name it will eat it.
    """
    avoided: set[str] = set(grounds.allergies)
    for text in (*grounds.user_texts, *grounds.notes):
        words = fold_words(text)
        if ALLERGY.search(words):
            return set(Allergen)
        for phrases in load_claim_phrases().values():
            is_refusal = phrases.has("negations", text)
            for allergen in WITHOUT_FISH:
                named = phrases.names[allergen].search(words)
                asked = phrases.asked[allergen].search(words)
                if asked or (named and is_refusal):
                    avoided.add(allergen)
    return avoided


def _find_reassurances(
    clauses: Sequence[str], grounds: Grounds, phrases: ClaimPhrases
) -> Iterator[Claim]:
    """Yield the words of the clauses that tell a guest with an allergy that all is well.

    "Drink it at ease" says so alone, and other words do in a text about the allergy.
    """
    avoided = [Allergen(name) for name in _list_avoided(grounds)]
    if _lack_all(avoided, grounds.wines):
        return
    if _is_about_avoided_allergens(", ".join(clauses), grounds, phrases):
        yield from _find_words("reassurance", clauses, phrases)
    elif avoided:
        yield from _find_words("at_ease", clauses, phrases)


def _find_words(
    row: str, clauses: Iterable[str], phrases: ClaimPhrases
) -> Iterator[Claim]:
    """Yield the words of a row in the clauses that have no negation beside them."""
    for clause in clauses:
        words = WordedText(clause)
        reassurance = phrases.by_kind[row]
        match = reassurance.search(words.folded)
        if match is None:
            continue
        rest = reassurance.sub(" ", words.folded)
        if not phrases.by_kind["negations"].search(rest):
            yield Claim("allergens", words.quote(match))


def _lack_all(allergens: Sequence[Allergen], wines: Sequence[AnyWine]) -> bool:
    """Return whether wines are known to be free of all these allergens.

    At least one must be named.
    """
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
    phrases = detect_claim_phrases(sentence)
    return phrases is None or not phrases.deny(sentence)


def find_asked_allergens(text: str) -> list[Allergen]:
    """Return the allergens that a text asks for or excludes: "Does it contain egg?"."""
    words = fold_words(text)
    asked: set[Allergen] = set()
    for phrases in load_claim_phrases().values():
        for allergen, question in phrases.asked.items():
            if question.search(words):
                asked.add(allergen)
    return sorted(asked, key=list(Allergen).index)


def mentions_kind(kind: str, text: str) -> bool:
    """Return whether a text has words of this kind, in any language."""
    words = fold_words(text)
    tables = load_claim_phrases().values()
    return any(phrases.by_kind[kind].search(words) for phrases in tables)


def _is_grounded(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether a source supports the claim of this kind in a sentence.

    What is safe for this guest, only a tool can say. A claim about the shop must be in a document
    that the sentence cites, or come from a tool.
    """
    if kind == f"free of {Allergen.SULPHITES}" and _is_unsulphured(sentence, grounds):
        return True
    if kind in FREE_OF:
        return _is_known_to_be_lacking(FREE_OF[kind], grounds)
    if kind in OF_WINES:
        return _holds_for_wines(kind, sentence, grounds)
    if kind == "safe":
        return _is_said(kind, grounds.tool_texts)
    texts = [*grounds.cited_texts, *grounds.tool_texts]
    is_said = SHOP_TOPICS[kind] in find_shop_topics(texts) or _is_said(kind, texts)
    return is_said and find_numbers(sentence) <= grounds.numbers


def _is_known_to_be_lacking(allergen: Allergen, grounds: Grounds) -> bool:
    """Return whether all wines of a sentence are known to lack an allergen.

    If no wine was found, the sentence speaks in general: "vegan wines contain no egg". A guest who
    avoids the allergen would take it for an answer.
    """
    if not grounds.wines:
        return allergen not in _list_avoided(grounds)
    return _lack_all([allergen], grounds.wines)


def _holds_for_wines(kind: str, sentence: str, grounds: Grounds) -> bool:
    """Return whether the claim of a sentence holds for its wines by the catalogue.

    If no wine was found, a sentence about vegan wines or certificates speaks in general.
    """
    if kind == "stock" and not _find_bottle_counts(sentence) <= grounds.numbers:
        return False
    if not grounds.wines:
        return kind in {"vegan", "certified"}
    facts = [_is_true_of(kind, wine) for wine in grounds.wines]
    holds = any(facts)
    if grounds.is_about_all:
        holds = all(facts)
    if kind == "certified" and not holds:
        return _is_said(kind, grounds.texts)
    return holds


def _is_true_of(kind: str, wine: AnyWine) -> bool:
    """Return whether the catalogue says this of a wine."""
    offers = [offer for offer in wine.facts.offers if offer.in_stock]
    if kind == "stock":
        return bool(offers)
    if kind == "vegan":
        return wine.facts.vegan == "yes"
    if kind == "certified":
        return mentions_kind(kind, wine.source_text)
    return any(offer.kind == kind for offer in offers)


def _find_bottle_counts(sentence: str) -> set[float]:
    """Return the numbers of bottles that a sentence names: 12 in "12 bottles in stock"."""
    words = fold_words(replace_number_words(sentence))
    counts: set[float] = set()
    for phrases in load_claim_phrases().values():
        for match in phrases.counts.finditer(words):
            counts.add(parse_number(match["count"]))
    return counts


def _find_unfounded_counts(sentence: str, grounds: Grounds) -> list[Claim]:
    """Return the counts of bottles in a sentence that no source has: "mamy 24 butelki"."""
    claims: list[Claim] = []
    for match in load_bottle_counts().finditer(replace_number_words(sentence)):
        count = parse_number(match["count"])
        if count not in ADVISED_COUNTS and count not in grounds.numbers:
            claims.append(Claim("count", match["words"]))
    return claims


def _is_said(kind: str, texts: Iterable[str]) -> bool:
    """Return whether one of the texts has words of this kind."""
    return any(mentions_kind(kind, text) for text in texts)
