"""What of a message is wanted, what is excluded, and what somebody does not tolerate. Pure.

An exclusion reaches over fillers and over lists ("no Riesling, Malbec or Merlot"), an intolerance
over a list of things to eat. Neither makes a wish of what it holds.
"""

from collections.abc import Mapping
from typing import Final, Literal

from agent.house_sommelier.lexicon import Match, Meaning, Phrases, Token, grammar_stems, stop_words

WISHES: Final = frozenset(
    "dish hue styles sweetness bodies tannins acidities grapes countries regions text min_abv "
    "max_abv".split()
)
_GRAMMAR: Final = frozenset(
    "joined max min about between max_after min_after people hours half each total number".split()
)
"""Words of numbers: in a clause they are words like any other."""
_ORIGIN_OR_KIND: Final = frozenset({"grapes", "countries", "regions", "styles", "hue"})
_FOOD_LIKE: Final = frozenset({"allergen", "elsewhere", "dish"})
_LISTED: Final = frozenset({"grapes", "countries", "regions", "allergen", "hue", "styles"})
_OPPOSITE: Final[Mapping[Meaning, Meaning]] = {
    Meaning("sweetness", ("sweet", "luscious")): Meaning("sweetness", ("bone_dry", "dry")),
    Meaning("sweetness", ("bone_dry", "dry")): Meaning("sweetness", ("off_dry", "medium", "sweet")),
    Meaning("bodies", ("light", "medium_light")): Meaning(
        "bodies", ("medium", "medium_full", "full")
    ),
    Meaning("bodies", ("medium_full", "full")): Meaning(
        "bodies", ("light", "medium_light", "medium")
    ),
    Meaning("tannins", ("high",)): Meaning("tannins", ("none", "low", "medium")),
    Meaning("acidities", ("high",)): Meaning("acidities", ("low", "medium")),
}

Mode = Literal["", "not", "allergy", "drop", "taste"]


class Clauses:
    """The known phrases of a message, sorted.

    `wanted` are wishes and all other words of meaning, `denied` exclusions, `denied_words` the
    places of excluded words that nothing knows, `elsewhere` whether an allergen was named that no
    wine declares, `only` the fields that were said with "only".
    """

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self.wanted: list[Match] = []
        self.denied: list[Match] = []
        self.implied: list[Meaning] = []
        self.allergens: list[str] = []
        self.denied_words: list[int] = []
        self.elsewhere = self.negated = False
        self.only: frozenset[str] = frozenset()
        self._mode: Mode = ""
        self._excluded: frozenset[str] = frozenset()
        self._linked = self._also_not = self._only_next = False
        self._last: list[Match] = []
        self._fillers, self._articles = grammar_stems("fillers"), grammar_stems("articles")
        self._links, self._also = grammar_stems("links"), grammar_stems("also_not")
        self._tolerance = grammar_stems("tolerance")
        self._read()
        if self.negated and not any(each.fields & WISHES for each in self.wanted):
            self._refuse()

    def written(self, match: Match) -> str:
        """A phrase as the person wrote it."""
        return self.phrases.written(match.start, match.end)

    def _refuse(self) -> None:
        """Take a "no" that rules nothing out for one to the wine that is pointed at."""
        pointed = [match for match in self.wanted if "ordinal" in match.fields]
        if pointed and not self.denied and not any("ask" in each.fields for each in self.wanted):
            meaning = Meaning("refuse", ("yes",))
            self.wanted.append(Match(pointed[0].start, pointed[0].end, (meaning,)))

    def _read(self) -> None:
        at = 0
        while at < len(self.phrases.words):
            match = self.phrases.at(at)
            end = max(match.end, at + 1)
            if match.fields - _GRAMMAR:
                self._read_match(match)
            else:
                self.wanted += [match] if match.fields else []
                for place in range(at, end):
                    self._read_word(place)
            at = end

    def _read_word(self, at: int) -> None:
        """A word that nothing knows: the clause goes on or ends."""
        word = self.phrases.words[at]
        self._last = self._last if word.stem in self._links else []
        if word.stem not in self._fillers:
            self._only_next = False
        if not self._mode:
            return
        if self._mode == "not" and not self._excluded and self._is_name(word):
            self.denied_words.append(at)
            return
        if self._mode in ("drop", "taste"):
            is_filler = word.stem in self._fillers or word.stem in self._links
            self._mode = self._mode if is_filler else ""
            return
        goes_on = self._tolerance_goes_on if self._mode == "allergy" else self._denial_goes_on
        if self.denied_words[-1:] == [at - 1] or not goes_on(word.stem, at):
            self._mode = ""

    def _is_name(self, word: Token) -> bool:
        named = word.written[0].isupper() and len(word.written) > 1
        return named and word.stem not in self._fillers and word.stem not in stop_words()

    def _tolerance_goes_on(self, word: str, at: int) -> bool:
        if word == ",":
            return bool(_FOOD_LIKE & self.phrases.at(at + 1).fields)
        return word in self._tolerance or word in self._links

    def _denial_goes_on(self, word: str, at: int) -> bool:
        """Whether it reaches beyond this word: "no egg, milk or fish", not "not red, white"."""
        if not self._excluded:
            return word in self._fillers or word in self._links
        if word in (",", "/"):
            is_list = self._is_list(at)
            self._excluded = self._excluded if is_list else self._excluded & {"allergen"}
            return bool(self._excluded)
        self._linked = self._linked or word in self._links
        self._also_not = self._also_not or word in self._also
        is_filler = word in self._fillers and word not in self._articles
        return word in self._links or (self._linked and is_filler)

    def _is_list(self, comma: int) -> bool:
        """Whether the comma stands in a list that a link ends: "no Merlot, Malbec or Syrah"."""
        match = self.phrases.at(comma + 1)
        while match.fields & self._excluded & _LISTED:
            following = self.phrases.at(match.end + 1)
            if self.phrases.stem(match.end) in self._links:
                return bool(following.fields & self._excluded)
            match = following
        return False

    def _read_match(self, match: Match) -> None:
        """A known phrase: a wish, a marker, or what a marker holds."""
        fields = match.fields
        if mode := self._marked(match):
            self._enter(mode)
        elif "not_before" in fields:
            self._denied_before()
            self._enter("")
        elif self._mode == "taste" and "dish" in fields:
            taste = (Meaning("text", ("$",)),)
            self.wanted.append(Match(match.start, match.end, taste))
        elif self._mode == "allergy":
            self._in_intolerance(match, fields)
        elif self._mode == "drop" and fields & WISHES:
            self._enter("")
        elif self._mode == "not":
            self._in_denial(match, fields)
        else:
            self._want(match, fields)

    def _marked(self, match: Match) -> Mode:
        """The clause that a marker opens: "no", "allergic to", "forget the", "tastes of"."""
        fields = match.fields
        if "allergy" in fields:
            self._not_tolerated_before(match)
            return "allergy"
        if "not" in fields and not fields & WISHES:
            self.negated = True
            return "not"
        found: Mode = "drop" if "drop" in fields else "not" if "abstains" in fields else ""
        if "taste" in match.values("trait"):
            found = "taste"
        self.wanted += [match] if found else []
        return found

    def _enter(self, mode: Mode) -> None:
        self._mode, self._excluded, self._last = mode, frozenset(), []
        self._linked = self._also_not = self._only_next = False

    def _not_tolerated_before(self, marker: Match) -> None:
        """ "egg and milk allergy": what stands right before the marker."""
        if not self._last or self._last[-1].end != marker.start:
            return
        for match in reversed(self._last):
            if not match.fields & {"allergen", "elsewhere"}:
                return
            self._take_back(match)
            self._not_tolerate(match)

    def _denied_before(self) -> None:
        """ "Riesling mag ich nicht"."""
        for match in self._last:
            self._take_back(match)
            self._deny(match)

    def _take_back(self, match: Match) -> None:
        self.wanted = [each for each in self.wanted if each is not match]

    def _in_intolerance(self, match: Match, fields: frozenset[str]) -> None:
        if fields & _FOOD_LIKE:
            self._not_tolerate(match)
        elif fields & WISHES or "ask" in fields:
            self._enter("")
            self._want(match, fields)
        else:
            self.wanted.append(match)

    def _in_denial(self, match: Match, fields: frozenset[str]) -> None:
        if fields & {"care"}:
            return
        if not fields & (WISHES | _FOOD_LIKE):
            if fields - {"joined", "between", "wine", "cue", "ignore", "only", "also"}:
                self.wanted.append(match)
            return
        if self._excluded and not self._excluded & fields and not self._denies_too(fields):
            self._enter("")
            self._want(match, fields)
            return
        self._deny(match)
        self._excluded, self._linked, self._also_not = fields, False, False

    def _denies_too(self, fields: frozenset[str]) -> bool:
        """Whether "nothing French or Chardonnay" goes on to another kind of thing."""
        return (
            self._also_not
            and bool(self._excluded & _ORIGIN_OR_KIND & WISHES)
            and bool(fields & _ORIGIN_OR_KIND)
        )

    def _sauced(self, sauce: Match) -> None:
        """ "Sticky sweet sauce" is no wish for a sweet wine."""
        taste = frozenset({"sweetness", "text", "acidities", "bodies"})
        self.wanted = [
            each
            for each in self.wanted
            if not (each.fields & taste and sauce.start - 3 <= each.end <= sauce.start)
        ]

    def _deny(self, match: Match) -> None:
        """Add an exclusion: of fish the allergen, of "sweet" the wish for dry."""
        if allergens := match.values("allergen"):
            self.allergens += allergens
            return
        self.denied.append(match)
        self.elsewhere |= "elsewhere" in match.fields
        self.implied += [_OPPOSITE[each] for each in match.meanings if each in _OPPOSITE]

    def _not_tolerate(self, match: Match) -> None:
        allergens = match.values("allergen")
        self.allergens += allergens
        self.elsewhere |= not allergens

    def _want(self, match: Match, fields: frozenset[str]) -> None:
        if "sauce" in fields:
            self._sauced(match)
        if "only" in fields:
            self._only_next = True
        elif self._only_next and fields & WISHES:
            self.only |= fields & WISHES
            self._only_next = False
        self.wanted.append(match)
        self._last.append(match)
