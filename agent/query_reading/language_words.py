"""The words of each language that are read in messages: the `words.toml` of its folder.

The tables beside this module say what their rows mean; a language names the rows in its own words.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final

from agent.languages import read_language_files
from agent.tables import StrictModel, WordSet
from agent.text import fold

WORDS_FILE: Final = "words.toml"
LIST_MARKS: Final = frozenset(",/")


class Grammar(StrictModel):
    """The small words of a language, or of several, that say how the others belong together."""

    or_words: WordSet = frozenset()
    nor_words: WordSet = frozenset()
    and_words: WordSet = frozenset()
    link_words: WordSet = frozenset()
    """Further words that may stand between two things excluded by one "no", such as articles."""
    dish_prepositions: WordSet = frozenset()
    """Words that introduce a dish: "with", "for"."""
    allergy_prepositions: WordSet = frozenset()
    """Words that introduce what an allergy names: "allergico alle uova"."""
    price_fillers: WordSet = frozenset()
    """Words that may stand between an amount and its limit or its currency."""
    label_words: WordSet = frozenset()
    """Words that stand on labels of many wines, or on none: "estate", "bottle"."""

    @cached_property
    def or_nor_words(self) -> frozenset[str]:
        """Return the words that join alternatives."""
        return self.or_words | self.nor_words

    @cached_property
    def joining_words(self) -> frozenset[str]:
        """Return the words that join the parts of a list."""
        return self.or_nor_words | self.and_words

    @cached_property
    def listing_words(self) -> frozenset[str]:
        """Return the words and marks that may stand between the parts of a list."""
        return self.joining_words | self.link_words | LIST_MARKS

    @cached_property
    def food_prepositions(self) -> frozenset[str]:
        """Return the words that introduce a dish, and never what an allergy names."""
        return self.dish_prepositions - self.allergy_prepositions


class LanguageWords(StrictModel):
    """The content of a `words.toml`.

    `words`, `dishes` and `places` are the phrases for the rows of the tables with these names,
    separated by commas; the first phrase is the name by which it is shown.
    """

    example: str
    """How somebody asks for a red for lamb under 20 euros, without Merlot; it is read by a test."""
    words: Mapping[str, str] = {}
    dishes: Mapping[str, str] = {}
    places: Mapping[str, str] = {}
    grapes: Mapping[str, str] = {}
    """Names of grapes as the language writes or inflects them, by their names in the table."""
    topics: Mapping[str, str] = {}
    """Words for a topic of questions, by its words in English, where all topics are listed. They
    are folded; `*` stands for any ending."""
    grammar: Grammar = Grammar()
    country_names: Mapping[str, Mapping[str, str]] = {}
    """What a country calls otherwise, by its ISO 3166 code and the name that is shown elsewhere."""


@cache
def load_language_words() -> Mapping[str, LanguageWords]:
    """Return the words of the languages that have any, by code, English first.

    Raises:
        ValueError: a `words.toml` is not valid.
    """
    return read_language_files(LanguageWords, WORDS_FILE)


@cache
def load_grammar() -> Grammar:
    """Return the small words of all languages, folded: a message is read by all of them."""
    united: dict[str, str] = {}
    for name in Grammar.model_fields:
        all_words: list[str] = []
        for language in load_language_words().values():
            all_words += getattr(language.grammar, name)
        united[name] = fold(" ".join(all_words))
    return Grammar.model_validate(united)
