"""Names of one and the same grape, country or region: any of them finds every other.

The catalogue and what is asked of it both go through these. The names are data, in
`synonyms.toml`.
"""

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from agent.text import words

Kind = Literal["grapes", "countries", "regions"]


def folded(name: str) -> str:
    """Return the words of a name in one spelling: `Côte-Rôtie` is `cote rotie`."""
    return " ".join(words(name))


def names(kind: Kind, name: str) -> tuple[str, ...]:
    """Return all names of what `name` names, folded, the canonical one first; none for no word."""
    one = folded(name)
    if kind == "countries":
        one = one.removeprefix("the ")
    return _groups()[kind].get(one, (one,)) if one else ()


def known_names(kind: Kind) -> Collection[str]:
    """Return every name that is known, folded."""
    return _groups()[kind].keys()


def key(kind: Kind, name: str) -> str:
    """Return the canonical name of what `name` names, folded: `Shiraz` and `Syrah` are `syrah`."""
    return next(iter(names(kind, name)), "")


@cache
def _groups() -> Mapping[Kind, Mapping[str, tuple[str, ...]]]:
    file = Path(__file__).with_suffix(".toml")
    data = tomllib.loads(file.read_text("utf-8"))
    kinds = TypeAdapter(dict[Kind, list[tuple[str, ...]]]).validate_python(data)
    return {kind: {one: each for each in kinds[kind] for one in each} for kind in kinds}
