"""Lists that a model reads, or completes: `sommelier wines import` of an owner."""

from pathlib import Path

from tests.acceptance.test_end_to_end import known_to
from tests.commands import sommelier_here
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.files import PICTURE, pdf

LIST = """name;producer;price
Vigna Ventosa;Cantina Sconosciuta;21,50
Rosso di Casa;Cantina Sconosciuta;9,90
"""
TOLD = {
    "wines": [
        {
            "number": 1,
            "style": "Red",
            "grapes": ["Nebbiolo", "Moonberry"],
            "country": "Italy",
        },
        {
            "number": 2,
            "style": "alcohol_free",
            "region": "https://x.example",
            "country": "Italy",
        },
        {"number": 3, "style": "white"},
    ]
}
PAGE = {
    "shows": "wine_list",
    "wines": [
        {
            "line": "Chablis, Domaine Vocoret 2022 9,50 54,-",
            "producer": "Domaine Vocoret",
            "name": "Chablis",
            "vintage": 2022,
            "price": "54,-",
            "glass_price": "9,50",
            "currency": "€",
        },
        {
            "line": "Barolo, Conterno 89,-",
            "name": "Barolo, Conterno",
            "price": 98,
            "sure": "likely",
        },
    ],
    "unreadable": 2,
}


def import_list(
    environment: dict[str, str], file: Path, *options: str, **settings: str
) -> str:
    arguments = ("wines", "import", str(file), *options)
    done = sommelier_here(*arguments, environment=environment, **settings)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def test_what_a_model_tells_of_a_list_is_shown_marked_and_then_written(
    environment: dict[str, str], tmp_path: Path, model_server: ModelServer
) -> None:
    file = tmp_path / "list.csv"
    file.write_text(LIST, "utf-8")
    model_server.script(*[answer_json(TOLD)] * 3)
    settings = known_to(model_server)
    shown = import_list(environment, file, "--ask-model", "--dry-run", **settings)
    assert "style: red; grapes: Nebbiolo; country: Italy" in shown
    assert "style (model), grapes (model), country (model)" in shown
    assert tuple(
        word for word in ("alcohol_free", "Moonberry", "x.example") if word not in shown
    ) == ("alcohol_free", "Moonberry", "x.example")
    written = import_list(environment, file, "--ask-model", "--yes", **settings)
    assert written.index("The model says") < written.index("2 added")
    assert "2 unchanged" in import_list(
        environment, file, "--ask-model", "--yes", **settings
    )
    assert (import_list(environment, file, "--ask-model")).startswith("2\n")


def test_a_pdf_and_a_scan_are_read_by_the_model_for_pictures_and_shown_first(
    environment: dict[str, str], tmp_path: Path, model_server: ModelServer
) -> None:
    file = tmp_path / "carte.pdf"
    file.write_bytes(pdf(PICTURE, PICTURE))
    refused = import_list(environment, file, "--yes")
    assert refused.startswith("1\n")
    assert "is a PDF" in refused
    assert "VISION_MODEL" in refused
    model_server.script(answer_json(PAGE), *[answer("no list")] * 3)
    settings = known_to(model_server) | {"VISION_MODEL": "gpt-4o"}
    read = import_list(environment, file, "--yes", "--without-samples", **settings)
    assert read.index("Domaine Vocoret Chablis 2022") < read.index("2 added")
    assert "€54 · glass €9.50" in read
    assert (
        "read: likely" in read
    )  # and its price was not in the line that the model copied
    assert "98" not in read
    assert "lines of this page could not be read" in read
    assert "of this number could not be read" in read
