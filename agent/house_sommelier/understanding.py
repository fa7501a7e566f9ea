"""From a person's words to what can be searched for. Pure; one message at a time."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Final

from agent.house_sommelier.lexicon import Language, Match, Meaning, Token, fold, scan, stem, tokens
from agent.house_sommelier.prices import Numbers, read_numbers
from agent.house_sommelier.stopwords import COMMON, STOP_WORDS
from agent.wine import Style, WineQuery

_FILLERS: Final = frozenset(
    "too very so a an any the that really of like eat drink to be being added really overly i me is"
    " we you please wine trop zu allzu sehr so etwas ich de du d la le les une un al el los gegen à"
    " muy demasiado troppo molto di il alla alle with anything something thing have want much".split()
)
_LINKS: Final = frozenset("or nor oder ou o ni and und et y e".split())
_SAME_KIND_LIST: Final = frozenset({"allergen", "foods", "grapes"})
_HUES_AS_STYLES: Final = ("red", "white", "rose", "orange")
_WITH_OWN_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
_OPPOSITE: Final[Mapping[Meaning, Meaning]] = MappingProxyType(
    {
        Meaning("sweetness", ("sweet", "luscious")): Meaning("sweetness", ("bone_dry", "dry")),
        Meaning("sweetness", ("bone_dry", "dry")): Meaning(
            "sweetness", ("off_dry", "medium", "sweet")
        ),
        Meaning("bodies", ("light", "medium_light")): Meaning(
            "bodies", ("medium", "medium_full", "full")
        ),
        Meaning("bodies", ("medium_full", "full")): Meaning(
            "bodies", ("light", "medium_light", "medium")
        ),
    }
)
_LISTS: Final = ("styles", "colours", "sweetness", "bodies", "foods", "grapes", "countries")
_MOST: Final[Mapping[str, int]] = MappingProxyType(
    {"foods": 6, "grapes": 6, "countries": 6, "regions": 6}
)


@dataclass(frozen=True, slots=True)
class Understood:
    """What a message says. `query.model_fields_set` holds just the filters it names."""

    query: WineQuery
    name: str = ""
    leftovers: tuple[str, ...] = ()
    cues: frozenset[str] = frozenset()
    language: Language | None = None

    @property
    def filters(self) -> frozenset[str]:
        """The names of the fields that the message sets."""
        return frozenset(self.query.model_fields_set)


@dataclass(slots=True)
class _Said:
    wanted: list[Meaning] = field(default_factory=list)
    unwanted: list[Meaning] = field(default_factory=list)
    alternatives: bool = False

    def values(self, name: str) -> list[str]:
        found = (value for meaning in self.wanted if meaning.field == name for value in meaning.values)
        return list(dict.fromkeys(found))
