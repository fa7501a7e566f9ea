"""The measuring of quotes: each mark catches the failure it is there for."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.documents.passages import Chunk
from benchmarks.quotes import Question, marks, read_questions
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore
from tests.databases import migrated_sqlite
from tests.library import MUSCADET, OYSTERS, SUR_LIE, snippet

CHUNKS = (SUR_LIE, MUSCADET, OYSTERS)
QUESTION = Question(id="keyword-1", kind="keyword", query="sur lie", sources=())
NEGATIVE = Question(id="negative-1", kind="negative", query="Bitcoin", sources=())


def part_of(chunk: Chunk, **other: str) -> dict[str, str]:
    return snippet(" ".join(chunk.text.split()[:8]), chunk) | other


PERFECT: dict[str, Any] = {
    "snippets": [part_of(SUR_LIE), part_of(OYSTERS)],
    "summary": "Two passages.",
    "noResults": False,
}
STITCHED = "Sur lie means that lees are mostly dead yeast cells."


def quoted(*snippets: dict[str, str]) -> str:
    return json.dumps(PERFECT | {"snippets": snippets})


@pytest.mark.parametrize(
    ("raw", "missed"),
    [
        (json.dumps(PERFECT), set()),
        (f"```json\n{json.dumps(PERFECT)}\n```", {"json_parse", "schema"}),
        (quoted(part_of(SUR_LIE, content=STITCHED)), {"verbatim"}),
        (
            json.dumps(PERFECT | {"snippets": [part_of(SUR_LIE, sourceTitle="Lees")]}),
            {"attribution"},
        ),
    ],
)
def test_a_planted_failure_is_caught_by_its_mark(raw: str, missed: set[str]) -> None:
    found = marks(QUESTION, raw, CHUNKS)
    assert found.keys() == {"json_parse", "schema", "verbatim", "attribution"}
    cascade = {"verbatim", "attribution"} if "schema" in missed else set()
    assert {name for name, score in found.items() if score < 1} == missed | cascade


def test_a_question_without_an_answer_is_answered_by_no_quote() -> None:
    nothing = {"snippets": [], "summary": "Nothing on this.", "noResults": True}
    assert marks(NEGATIVE, json.dumps(nothing), CHUNKS)["negative"] == 1
    assert marks(NEGATIVE, json.dumps(PERFECT), CHUNKS)["negative"] == 0
    assert marks(NEGATIVE, None, ()) == {"negative": 1}
    assert marks(QUESTION, None, ()) == {"verbatim": 0, "attribution": 0}


async def test_the_known_sources_of_the_24_questions_are_retrieved(
    environment: dict[str, str],
) -> None:
    file = Path(environment["XDG_DATA_HOME"]) / "sommelier" / "sommelier.sqlite3"
    engine = await migrated_sqlite(file)
    store = SqlDocumentStore(Sessions(engine))
    missed, questions = [], read_questions()
    for question in questions:
        paths = [chunk.path for chunk in await store.search([question.query], 6)]
        missed += [
            (question.id, source)
            for source in question.sources
            if not any(path.endswith(source) for path in paths)
        ]
    await engine.dispose()
    assert len(questions) == 24
    assert len(missed) <= 1, missed
