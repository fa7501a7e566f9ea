"""What can be looked for nearby; a new category is one new table in `categories.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agent.places.distinct import same_word, words


class Category(BaseModel):
    """A kind of place: what people call it, the hint for the model, and ten phrases of its own.

    The phrases, each followed by the place, are the queries of a house without a model. Behind the
    colon of the hint stand words that mean this kind of place, with commas between them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    hint: str
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]


@cache
def categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return MappingProxyType(TypeAdapter(dict[str, Category]).validate_python(tables))


def category_named(name: str) -> str:
    """Return the key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases and the words of its hint; where two categories have
    the same, the first is meant.

    Raises:
        ValueError: there is none; the message lists what there is.
    """
    said = words(name)
    for key, category in categories().items():
        if any(_same(said, known) for known in (words(key), *_names(category))):
            return key
    raise ValueError(f"there is no category {name.strip()[:40]!r}; use {', '.join(categories())}")


@cache
def _names(category: Category) -> tuple[list[str], ...]:
    hinted = category.hint.rpartition(":")[2].split(",")
    return tuple(map(words, (category.label, *category.phrases, *hinted)))


def _same(said: Sequence[str], known: Sequence[str]) -> bool:
    return len(said) == len(known) and all(map(same_word, said, known))
