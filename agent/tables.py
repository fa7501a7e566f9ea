"""Data that is held to its form, and the files beside the code that it is read from."""

import tomllib
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter

T = TypeVar("T")
WordSet = Annotated[frozenset[str], BeforeValidator(str.split)]
"""Words that a file has in one string, with white space between them."""


class StrictModel(BaseModel):
    """A base class of immutable models that reject unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(form: type[T], file: Path) -> T:
    """Read a file as data of this form.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no TOML, or not of this form.
    """
    return TypeAdapter(form).validate_python(tomllib.loads(file.read_text("utf-8")))
