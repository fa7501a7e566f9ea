"""A wine as read from a picture; its fields accept the spellings of people and models."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import SkipJsonSchema

from agent import lengths
from agent.markdown import visible
from agent.numerals import NUMBER, value
from agent.sommelier.sommelier_prompts import compact
from agent.sommelier.wine import Currency, Style, Wine, canonical, currency_of

LISTED: Final = "list#"
OF_LABEL: Final = "label#"
"""The beginnings of the ids of wines that were read."""
Sureness = Literal["certain", "likely", "unsure"]
YEARS: Final = range(1800, 2100)
DEAREST: Final = 1_000_000


def numbers_in(line: str) -> list[float]:
    """Return the numbers of a line in order, those in digits alone."""
    return [*map(value, NUMBER.findall(line))]


def _line(value: object) -> str:
    """Return a text of a picture on one line, no longer than a name, without invisible signs."""
    text = visible(str(value)[: 4 * lengths.READ_NAME]) if isinstance(value, str | int) else ""
    return " ".join(text.split())[: lengths.READ_NAME]


def _number(value: object) -> float | None:
    """Read a number as lists write it: 48,-, €48.50."""
    found = numbers_in(str(value)[: lengths.READ_NAME])
    return found[0] if found and 0 < found[0] < DEAREST else None


def _year(value: object) -> int | None:
    year = _number(value)
    return int(year) if year and year in YEARS else None


def _currency(value: object) -> Currency | None:
    return currency_of(str(value).strip())


def _or_none(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Return None for a value that cannot be read, so that it spoils no list of a hundred wines."""
    try:
        return read(value)
    except ValidationError:
        return None


def _sure(value: object, read: ValidatorFunctionWrapHandler) -> object:
    return _or_none(value, read) or "likely"


Line = Annotated[str, BeforeValidator(_line)]
Number = Annotated[float | None, BeforeValidator(_number)]


class ReadWine(BaseModel):
    """A wine as read from a label or a wine list that somebody showed.

    Its `id` is given once all are read. `known_id` is the id of this wine in the catalogue, if it
    is there, and `known` that wine once it was looked up.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra=compact)

    line: Line = Field(default="", description="What stands there, word for word.")
    producer: Line = ""
    name: Line = ""
    vintage: Annotated[int | None, BeforeValidator(_year)] = None
    region: Line = ""
    style: Annotated[Style | None, BeforeValidator(canonical), WrapValidator(_or_none)] = None
    price: Number = None
    glass_price: Number = None
    currency: Annotated[Currency | None, BeforeValidator(_currency)] = None
    sure: Annotated[Sureness, WrapValidator(_sure)] = "certain"
    id: SkipJsonSchema[str] = ""
    known_id: SkipJsonSchema[str | None] = None
    known: SkipJsonSchema[Wine | None] = Field(None, exclude=True)

    @property
    def label(self) -> str:
        """Return producer, name and vintage as they were read."""
        producer = "" if self.producer in self.name else self.producer
        return " ".join(str(part) for part in (producer, self.name, self.vintage) if part)

    @property
    def source_text(self) -> str:
        """Return the words of the label or the list, and of the catalogue if it knows the wine."""
        own = [self.label, self.region, *map(str, self.prices)]
        return "\n".join([*own, self.known.source_text if self.known else ""])

    @property
    def prices(self) -> tuple[float, ...]:
        """Return what it may be said to cost: a bottle, a glass, a bottle of ours."""
        ours = self.known.prices if self.known else ()
        return (*(price for price in (self.price, self.glass_price) if price is not None), *ours)

    @property
    def facts(self) -> Wine:
        """Return the wine of the catalogue, or a wine of which no more is known than was read."""
        read = {"id", "producer", "name", "vintage", "region", "style", "price"}
        return self.known or Wine.model_construct(**self.model_dump(include=read), country="")

    @property
    def is_listed(self) -> bool:
        """Tell whether it is on a wine list."""
        return self.id.startswith(LISTED)


AnyWine = Wine | ReadWine


def catalogue_ids(wine_ids: Iterable[str]) -> list[str]:
    """Return the ids of wines of the catalogue among these."""
    return [wine_id for wine_id in wine_ids if not wine_id.startswith((LISTED, OF_LABEL))]
