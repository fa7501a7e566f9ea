"""`sommelier ask`, `quotes`, `find` and `documents`; every command once in a subprocess."""

import re
from collections.abc import Sequence
from pathlib import Path

from db.documents.adding import STARTER
from tests.acceptance.test_end_to_end import known_to
from tests.commands import sommelier, sommelier_here
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.doubles.web import Web
from tests.library import REFINED

QUESTION = "What does sur lie mean?"
SUR_LIE = "starter/methods/sur-lie.md"
ANSWER = (
    "Lees are the sediment that settles after fermentation, mostly dead yeast cells with some "
    "grape particles and tartrate crystals."
)


def to_one_line(text: str) -> str:
    return " ".join(text.split())


def starter(path: str) -> str:
    return to_one_line((STARTER / path.removeprefix("starter/")).read_text("utf-8"))


def test_without_a_model_ask_shows_the_best_passages_with_their_sources(
    home: dict[str, str],
) -> None:
    done = sommelier("ask", QUESTION, "--refine", environment=home)
    assert (done.returncode, done.stderr) == (0, "")
    lead, passage, *_ = done.stdout.split("\n\n")
    assert lead == "Our documents say, word for word:"
    assert "I answer by simple rules here, without AI." in done.stdout
    assert to_one_line(passage).removesuffix(" [1]") in starter(SUR_LIE)
    assert "\nSources\n[1] Sur lie: ageing on the lees · " in done.stdout


def test_an_answer_comes_with_the_refined_question_and_its_sources(
    home: dict[str, str], model_server: ModelServer
) -> None:
    model_server.script(answer_json(REFINED), answer(f"{ANSWER} [{SUR_LIE}]"))
    settings = known_to(model_server)
    done = sommelier_here("ask", QUESTION, "--refine", environment=home, **settings)
    refined, text, sources = done.stdout.split("\n\n")
    assert refined == f"I also searched for: {REFINED['refined_query']}"
    assert text == f"{ANSWER} [1]"
    assert sources.startswith("Sources\n[1] Sur lie: ageing on the lees · ")
    traced = sommelier_here("traces", "list", environment=home)
    assert re.search(rf" answered .*{QUESTION[:20]}", traced.stdout)


def test_in_a_crisis_a_command_says_where_to_get_help(home: dict[str, str]) -> None:
    for command in (["ask"], ["quotes"], ["find", "wine bar"]):
        done = sommelier_here(*command, "ich will nicht mehr leben", environment=home)
        assert done.returncode == 0
        assert "0800 111 0 111" in done.stdout


def test_quotes_are_verbatim_passages_of_their_documents(home: dict[str, str]) -> None:
    done = sommelier_here("quotes", "cork taint", environment=home)
    announcement, *quotes, note = done.stdout.strip().split("\n\n")
    assert len(quotes) == 2
    for number, quote in enumerate(quotes, 1):
        source, _, content = quote.partition("\n")
        assert source.startswith(f"{number}. Cork taint · ")
        assert to_one_line(content) in starter("faults/cork-taint.md")
    assert announcement == "Our documents say, word for word:"
    assert "I answer by simple rules here, without AI." in note


def test_find_saves_ten_queries_and_shows_them_as_links(
    home: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "queries.txt"
    done = sommelier_here(
        "find", "wine bars", "Lyon", "--save", str(file), environment=home
    )
    assert (done.returncode, done.stderr) == (0, f"Saved the queries to {file}.\n")
    queries = file.read_text("utf-8").splitlines()
    assert len(queries) == len(set(queries)) == 10
    assert "I can't look up addresses here" in done.stdout
    assert all(f". {query} (https://" in done.stdout for query in queries)
    assert done.stdout.count("https://duckduckgo.com/?q=") == 10


def test_find_merges_the_results_of_a_place_search(
    home: dict[str, str], web: Web
) -> None:
    done = sommelier_here(
        "find", "WINE_SHOP", "Lyon", environment=home, SEARXNG_URL=web.base_url
    )
    assert done.stdout.startswith(
        "Wine shop · Lyon\n\n1. Cave des Halles · halles.example (https://halles.example/vins)\n"
        "Wines of the Rhône.\nfound by 10 of 10 searches"
    )
    assert len(web.queries) == len(set(web.queries)) == 10


def test_a_failure_is_one_line_and_an_exit_status(
    home: dict[str, str], tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.script(answer("No."), answer("No."))
    cases: list[tuple[Sequence[str], dict[str, str], int, str]] = [
        (("ask", " "), {}, 2, "What should I look up?"),
        (("find", "pub", "Lyon"), {}, 2, "What should I look for, and where?"),
        (
            ("find", "WINERY", "Lyon", "--save", str(tmp_path)),
            {},
            1,
            f"{tmp_path} cannot be",
        ),
        (
            ("find", "WINERY", "Lyon"),
            known_to(model_server),
            1,
            "I'm sorry, I couldn't think",
        ),
    ]
    for arguments, settings, status, message in cases:
        done = sommelier_here(*arguments, environment=home, **settings)
        assert done.returncode == status
        assert done.stderr.startswith(f"sommelier: {message}")
        assert done.stderr.count("\n") == 1
        assert "secret" not in done.stdout + done.stderr


def test_documents_are_added_found_and_removed(home: dict[str, str]) -> None:
    notes = Path(home["HOME"]) / "notes"
    notes.mkdir()
    (notes / "zebulon.md").write_text("# The Zebulon grape\n\nZebulon ripens late.\n")
    (notes / "broken.pdf").write_text("not a PDF")
    added = sommelier("documents", "add", "notes", environment=home)
    again = sommelier_here("documents", "add", "notes/broken.pdf", environment=home)
    listed = sommelier_here("documents", "list", environment=home)
    found = sommelier_here("documents", "search", "zebulon", environment=home)
    removed = sommelier_here("documents", "remove", "notes", environment=home)
    assert (added.returncode, added.stdout) == (0, "1 added, 0 updated, 0 unchanged.\n")
    assert added.stderr == "Not added: notes/broken.pdf is broken or cut off\n"
    assert (again.returncode, again.stderr) == (1, added.stderr)
    *rows, count = listed.stdout.splitlines()
    assert count == f"{len(rows) - 1} documents."
    assert sum(row.startswith("starter/") for row in rows) == len(rows) - 2 >= 25
    assert found.stdout.startswith(
        "The Zebulon grape · Section 1 of 1 (notes/zebulon.md)\n"
    )
    assert "Zebulon ripens late." in found.stdout
    assert removed.stdout == f"1 removed, {len(rows) - 2} left.\n"


def test_vectors_are_made_as_documents_are_added(
    home: dict[str, str], web: Web
) -> None:
    settings = {
        "EMBEDDING_MODEL": "vectors",
        "SECOND_BASE_URL": f"{web.base_url}/v1",
        "OPENAI_API_KEY": "sk-of-another-server",
    }
    (Path(home["HOME"]) / "a.md").write_text("# A\n\nText.")
    added = sommelier("documents", "add", "a.md", environment=home | settings)
    assert re.search(
        r"^\d{3} parts can be found by meaning now\.$", added.stdout, re.MULTILINE
    )
    assert len(web.embedded_texts) > 250
    assert set(web.keys) == {None}
