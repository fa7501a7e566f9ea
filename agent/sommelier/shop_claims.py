"""Find what a sentence says of the shop that no source supports: its hours, delivery or address.

The words of such claims are endless: "Hamburg by Saturday should be no trouble". So in the answer
to a question about the shop, a sentence is a claim if it repeats a word of the question and speaks
of no wine. A street with a number is a claim in every answer.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from agent.documents.citations import remove_citations
from agent.documents.shop import find_shop_topics
from agent.i18n import current_language
from agent.language import begins_with_pronoun, common_words, stem
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.tokens import Token, tokenize
from agent.sommelier.claim_phrases import detect_claim_phrases, fold_words
from agent.sommelier.claims import Claim
from agent.sommelier.figures import find_amounts
from agent.sommelier.grounding import Grounds
from agent.text import fold, pattern

SHOP_QUESTIONS: Final = frozenset({"hours", "delivery", "returns", "address"})
"""The topics of questions that only a document about the shop answers."""
WINE_FIELDS: Final = frozenset(
    """
    dish colour styles grapes sweetness bodies text tannins acidities offer allergen
    without_allergens
    """.split()
)
"""The fields of phrases that speak of wine, food or bottles, but not of places."""
PLACES: Final = frozenset({"regions"})
ORDINARY: Final = "ordinary"
"""The role of words that are no wish, such as the days of the week."""
MIN_LETTERS: Final = 4
"""The fewest letters of a word of the question that counts."""
OF_THE: Final = r"(?: (?:d\p{L}{0,3}|l[ae]s?|el|los))*"
"""The small words in the name of a street: "rue de la République"."""
PROPER: Final = r"(?: \p{Lu}[\p{L}'’.-]*| [dl]['’]\p{L}+)"
"""A word of the name itself: " République", " l'Église"."""
HOUSE: Final = r"\d{1,3}(?:[^\p{L}\d]|\z)"
"""The number of a house, which is no vintage: "Rue de Chaux 2019" is a wine."""
ROMANCE_STREETS: Final = (
    "(?i:rua|rue|via|viale|corso|calle|avenida|avenue|boulevard"
    "|piazza|plaza|praça|largo)"
)
FRENCH_STREETS: Final = "(?:rue|avenue|boulevard|quai|cours|impasse)"
ENGLISH_STREETS: Final = "(?:Street|Road|Lane|Avenue|Square|Row)"
ENGLISH_STREETS_WITHOUT_HOUSE: Final = "(?:Street|Lane|Avenue)"
GERMANIC_STREETS: Final = (
    "(?:straße|strasse|gasse|allee|straat|laan|plein|gracht|gatan)"
)
CAPITALISED: Final = r"\p{Lu}\p{L}+ "
ADDRESS_FORMS: Final = (
    # "Rua das Flores, 27"
    rf"{ROMANCE_STREETS}{OF_THE}{PROPER}{{1,4}},? {HOUSE}",
    # "14 bis, rue de Lyon"
    rf"\d{{1,3}}(?: ?bis)?,? {FRENCH_STREETS}{OF_THE}{PROPER}",
    # "12 King William Street"
    rf"\d{{1,3}},? (?:{CAPITALISED}){{1,3}}{ENGLISH_STREETS}",
    # "in Church Lane"
    rf"(?:in|on|at) (?:{CAPITALISED}){{1,2}}{ENGLISH_STREETS_WITHOUT_HOUSE}",
    # "Kirchgasse 5"
    rf"\p{{Lu}}[\p{{L}}-]*{GERMANIC_STREETS} {HOUSE}",
)
"""The forms in which languages write a street, most of them with the number of a house."""
STREET: Final = pattern("|".join(ADDRESS_FORMS))


def find_unfounded_streets(sentence: str, grounds: Grounds) -> Iterator[Claim]:
    """Yield the streets with a number that neither a source nor the guest has named."""
    texts = [*grounds.texts, *grounds.user_texts]
    known = "".join(map(fold_words, texts))
    for match in STREET.finditer(sentence):
        if fold_words(match[0]) not in known:
            yield Claim("address", match[0].strip(" ,.;:!)"))


def find_shop_claims(sentence: str, grounds: Grounds) -> Iterator[Claim]:
    """Yield a sentence that answers the question about the shop in the newest message.

    It needs the citation of a document, or the result of a tool that knows the shop.
    """
    if not grounds.user_texts:
        return
    question = grounds.user_texts[-1]
    topics = SHOP_QUESTIONS & find_shop_topics([question])
    has_source = bool(grounds.cited_texts) or any(grounds.tool_texts)
    if not topics or has_source:
        return
    text = remove_citations(sentence)
    if any(find_amounts(text)):  # a sum, which is checked as one
        return
    phrases = detect_claim_phrases(text)
    if phrases is None:
        return
    # "No problem" affirms what it stands beside.
    rest = phrases.by_kind["reassurance"].sub(" ", fold_words(text))
    if phrases.deny(rest):
        return
    answer = _Words(text)
    # "It delivers plum and cherry" is about the wine.
    has_topic = not topics.isdisjoint(find_shop_topics([text]))
    is_on_topic = has_topic and not begins_with_pronoun(text)
    repeats_question = not answer.content.isdisjoint(_Words(question).content)
    if (is_on_topic or repeats_question) and not answer.is_about_wine:
        yield Claim("shop", text.strip())


class _Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self._language = detect_language(text, current_language())
        self._tokens: Sequence[Token] = tokenize(text)
        self._phrases: Sequence[Phrase] = find_phrases(self._tokens, self._language)

    @property
    def is_about_wine(self) -> bool:
        """Return whether the text names a wine, a dish or a size of bottles."""
        for phrase in self._phrases:
            if phrase.has_field(WINE_FIELDS) or phrase.has_role("wine"):
                return True
        return False

    @property
    def content(self) -> set[str]:
        """Return the stems of the words that say what a question is about: "Hamburg".

        The words of a topic, such as "deliver", are not among them.
        """
        known: set[int] = set()
        for phrase in self._phrases:
            is_day_or_place = phrase.has_role(ORDINARY) or phrase.has_field(PLACES)
            if not is_day_or_place:
                known.update(phrase.indices)
        known_words = common_words(self._language)
        stems: set[str] = set()
        for index, token in enumerate(self._tokens):
            word = fold(token.written)
            is_known = index in known or word in known_words
            if is_known or find_shop_topics([word]):
                continue
            if len(word) >= MIN_LETTERS and word.isalpha():
                stems.add(stem(token.stem, self._language))
        return stems
