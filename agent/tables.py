"""Validated data, and the TOML files next to the code that contain it."""

import tomllib
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter

T = TypeVar("T")
WordSet = Annotated[frozenset[str], BeforeValidator(str.split)]
"""A set of words that a file lists in one string, separated by white space."""


class StrictModel(BaseModel):
    """A base class of immutable models that reject unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(data_type: type[T], file: Path) -> T:
    """Return the content of a TOML file, validated as `data_type`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not valid TOML, or its content is not of this type.
    """
    content = tomllib.loads(file.read_text("utf-8"))
    return TypeAdapter(data_type).validate_python(content)
