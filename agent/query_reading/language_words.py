"""The words of each language that are read in messages, from the `words.toml` of its folder.

The tables beside this module say what each row means. A language has the phrases for these rows.
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
    """The small words of one or several languages, which say how other words belong together."""

    or_words: WordSet = frozenset()
    nor_words: WordSet = frozenset()
    and_words: WordSet = frozenset()
    link_words: WordSet = frozenset()
    """Other words, such as articles, that may stand between two things that one "no" excludes."""
    dish_prepositions: WordSet = frozenset()
    """Words that introduce a dish: "with", "for"."""
    allergy_prepositions: WordSet = frozenset()
    """Words that introduce an allergen: "alle" in "allergico alle uova"."""
    price_fillers: WordSet = frozenset()
    """Words that may stand between an amount and its limit or its currency."""
    label_words: WordSet = frozenset()
    """Words that say nothing about which wine is meant: "estate" is on many labels, "bottle" on
    none."""
    asking_words: WordSet = frozenset()
    """Words of questions that no question is about: "recognise", "need", "happen"."""

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
        """Return the words that introduce a dish, and never an allergen."""
        return self.dish_prepositions - self.allergy_prepositions


class LanguageWords(StrictModel):
    """The content of a `words.toml`.

    `words`, `dishes` and `places` have the phrases for the rows of the tables with these names. The
    phrases of a row are separated by commas. The first phrase is the name that users are shown.
    """

    example: str
    """A message that asks for a red for lamb under 20 euros without Merlot. A test reads it."""
    each: str = ""
    """The phrases beside a price that make it that of one bottle: "each", "a bottle"."""
    words: Mapping[str, str] = {}
    dishes: Mapping[str, str] = {}
    places: Mapping[str, str] = {}
    grapes: Mapping[str, str] = {}
    """The names of grapes in this language, with inflected forms, by their names in the table."""
    writes_grapes_small: bool = False
    """Whether this language writes grapes in small letters within a sentence: "pinot noir"."""
    topics: Mapping[str, str] = {}
    """The folded words for topics of questions, by the words of the topic in English.

    `*` stands for any ending. The English file lists all topics.
    """
    grammar: Grammar = Grammar()
    country_words: Mapping[str, Mapping[str, str]] = {}
    """Phrases for rows of `words` and `places` that mean this in one country only, by its ISO 3166
    code: a "vinho suave" is sweet in Brazil."""
    country_names: Mapping[str, Mapping[str, str]] = {}
    """Other names in a country, by its ISO 3166 code and the name that is usual elsewhere."""


@cache
def load_language_words() -> Mapping[str, LanguageWords]:
    """Return the words of each language that has a `words.toml`, by its code, English first.

    Raises:
        ValueError: a `words.toml` is not valid.
    """
    return read_language_files(LanguageWords, WORDS_FILE)


@cache
def load_grammar() -> Grammar:
    """Return the folded small words of all languages. Every message is read with all of them."""
    united: dict[str, str] = {}
    for name in Grammar.model_fields:
        all_words: list[str] = []
        for language in load_language_words().values():
            all_words += getattr(language.grammar, name)
        united[name] = fold(" ".join(all_words))
    return Grammar.model_validate(united)
