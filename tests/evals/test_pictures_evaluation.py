"""The evaluation of pictures: drawn as they say, and every metric catches what it is there for."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agent.sommelier.attachment import Attachment
from agent.sommelier.wine import LISTED, OF_LABEL, ReadWine
from benchmarks.pictures import LOOKS, Picture, marked, pictures

CASES = {picture.id: picture for picture in pictures()}
CONTENTS: dict[str, Any] = {"label": "labels", "list": "wine_list"}


def as_read(picture: Picture) -> Attachment:
    """What a model without fault reads."""
    sign = OF_LABEL if picture.kind == "label" else LISTED
    wines = [
        ReadWine(
            id=f"{sign}{at}",
            line="x",
            currency=picture.currency,
            known_id=wine.known_id or None,
            **wine.model_dump(exclude={"known_id"}),
        )
        for at, wine in enumerate(picture.wines, start=1)
    ]
    return Attachment(shows=CONTENTS[picture.kind], wines=tuple(wines))


def test_there_are_forty_labels_and_ten_lists_in_every_look() -> None:
    assert Counter(picture.kind for picture in CASES.values()) == {"label": 40, "list": 10}
    assert {picture.look for picture in CASES.values()} == LOOKS.keys()
    assert sum(bool(picture.wines[0].known_id) for picture in CASES.values()) > 20


def _with(read: Attachment, **fields: object) -> tuple[ReadWine, ...]:
    return tuple(wine.model_copy(update=fields) for wine in read.wines)


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        ("shows", lambda read: {"shows": "other"}),
        ("wines", lambda read: {"wines": read.wines[1:]}),
        ("vintages", lambda read: {"wines": _with(read, vintage=1999)}),
        ("prices", lambda read: {"wines": _with(read, price=1.0)}),
        ("cellar", lambda read: {"wines": _with(read, known_id="another")}),
        ("no_others", lambda read: {"wines": (*read.wines, read.wines[0])}),
    ],
)
def test_each_metric_catches_what_it_is_there_for(
    metric: str, changed: Callable[[Attachment], dict[str, object]]
) -> None:
    picture = CASES["list-01"]
    read = as_read(picture)
    assert all(mark.passed for mark in marked(picture, read).values())
    worse = marked(picture, read.model_copy(update=changed(read)))
    assert worse[metric].score < 1
    assert worse[metric].reason
