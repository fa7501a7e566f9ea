"""What a person does not want. Pure."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.house_sommelier.lexicon import Meaning
from agent.sommelier.wine import WineQuery

_MOST_TELLING: Final = ("regions", "grapes", "text", "styles", "hue", "countries")
_FIELD_OF_QUERY: Final = (("styles", "styles"), ("styles", "hue"), ("colours", "hue"))
_LISTS: Final = ("grapes", "countries", "regions")
_MOST_DENIED: Final = 12


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Pairs of a field and a value that no wine of an answer may have.

    The fields are `grapes`, `countries`, `regions`, `styles`, `hue` (of style or colour), `text`
    (what a tasting note must not mention) and `name` (a word of a label).
    """

    pairs: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is excluded."""
        return bool(self.pairs)

    def of(self, field: str) -> frozenset[str]:
        """The excluded values of a field."""
        return frozenset(value for name, value in self.pairs if name == field)

    def joined(self, later: "Exclusions", wanted: WineQuery) -> "Exclusions":
        """These and `later` ones, without the earlier ones that are `wanted` now."""
        named = {(name, value) for name in _LISTS for value in getattr(wanted, name)}
        named |= {(name, str(v)) for of, name in _FIELD_OF_QUERY for v in getattr(wanted, of)}
        return Exclusions((self.pairs - named) | later.pairs)


def exclusions(denied: Iterable[tuple[Meaning, ...]], names: Collection[str]) -> Exclusions:
    """What denied phrases and names rule out.

    A phrase with several meanings rules out the narrowest: "no champagne" is no sparkling wine
    from Champagne, and any other sparkling wine is welcome.
    """
    pairs = {(field, value) for meanings in denied for field, value in _narrowest(meanings)}
    return Exclusions(frozenset(pairs | {("name", name) for name in names}))


def _narrowest(meanings: tuple[Meaning, ...]) -> Iterator[tuple[str, str]]:
    fields = {meaning.field for meaning in meanings}
    field = next((name for name in _MOST_TELLING if name in fields), None)
    if "allergen" in fields or field is None:
        return
    yield from (
        (field, v) for meaning in meanings if meaning.field == field for v in meaning.values
    )


def narrowed(query: WineQuery, without: Exclusions) -> WineQuery:
    """`query` with all exclusions that filters can say; no value is both asked for and denied."""
    if not without:
        return query
    fields: dict[str, object] = {name: getattr(query, name) for name in query.model_fields_set}
    for name in _LISTS:
        denied = without.of(name)
        if kept := [value for value in getattr(query, name) if value not in denied]:
            fields[name] = kept
        else:
            fields.pop(name, None)
        if denied:
            fields[f"without_{name}"] = sorted(denied)[:_MOST_DENIED]
    return WineQuery.model_validate(fields | _styles(query, without))


def _styles(query: WineQuery, without: Exclusions) -> dict[str, object]:
    denied = without.of("styles") | without.of("hue")
    kept = [style for style in query.styles if style not in denied]
    asked: dict[str, object] = {"styles": kept} if kept else {}
    return {**asked, "without_styles": sorted(denied)} if denied else asked


NOTHING_EXCLUDED: Final = Exclusions()
