"""The evaluation of pictures: drawn as they say, and every metric catches what it is there for."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.evals.dataset import Picture
from agent.evals.pictures import LOOKS, drawn, lines, marked, pictures
from agent.sommelier.attachment import Attachment
from agent.sommelier.wine import LISTED, OF_LABEL, ReadWine
from bot.__main__ import app
from tests.doubles.model_server import ModelServer, Step, answer_json
from tests.pictures import opened

CASES = {each.id: each for each in pictures()}
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


def scripted(picture: Picture) -> Step:
    """The answer of a model that reads everything, and takes an order for a wine."""
    shown = list(lines(picture))
    wines = [
        {
            "line": line if picture.kind == "list" else wine.label,
            "currency": picture.currency,
            **wine.model_dump(exclude={"known_id"}),
        }
        for wine, line in zip(picture.wines, shown, strict=False)
    ]
    if picture.order:
        wines.append({"line": picture.order, "name": picture.order})
    said = {"shows": CONTENTS[picture.kind], "wines": wines, "unreadable": picture.smudged}
    return answer_json(said)


def test_there_are_forty_labels_and_ten_lists_in_every_look() -> None:
    assert Counter(each.kind for each in CASES.values()) == {"label": 40, "list": 10}
    assert {each.look for each in CASES.values()} == LOOKS.keys()
    assert sum(bool(each.wines[0].known_id) for each in CASES.values()) > 20


@pytest.mark.parametrize("name", ["label-03", "label-04", "list-04", "list-08"])
def test_a_picture_is_the_same_each_time_it_is_drawn(name: str) -> None:
    assert drawn(CASES[name]) == drawn(CASES[name])
    assert min(opened(drawn(CASES[name])).size) >= 500


def _with(read: Attachment, **fields: object) -> tuple[ReadWine, ...]:
    return tuple(each.model_copy(update=fields) for each in read.wines)


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
    assert all(each.passed for each in marked(picture, read).values())
    worse = marked(picture, read.model_copy(update=changed(read)))
    assert worse[metric].score < 1
    assert worse[metric].reason


def test_a_model_that_reads_everything_passes(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.script(*map(scripted, CASES.values()))
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    monkeypatch.setenv("VISION_MODEL", "gpt-4o")
    ran = CliRunner().invoke(app, ["eval", "pictures", "--concurrency", "1", "--json"])
    assert ran.exit_code == 0, ran.output
    (variant,) = json.loads(ran.stdout)["variants"]
    wrong = {name: each for name, each in variant["metrics"].items() if each["score"] < 1}
    assert wrong == {}
    assert variant["items"] == 50
