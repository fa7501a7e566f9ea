"""The 24 questions about quotes find the documents that answer them."""

from pathlib import Path

import pytest

from agent.documents.relevance import retrieve_relevant
from agent.engine.run import NO_SPAN
from agent.i18n import use_language
from benchmarks.quotes import read_questions
from db.documents.store import SqlDocumentStore
from db.engine import Sessions
from tests.databases import migrated_sqlite


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


@pytest.mark.parametrize(
    ("language", "query"),
    [
        ("de", "Edelfäule"),
        ("es", "podredumbre noble"),
        ("fr", "pourriture noble"),
        ("it", "muffa nobile"),
        ("nl", "edelrot"),
        ("pt", "podridão nobre"),
    ],
)
async def test_only_noble_rot_is_quoted_for_it_in_every_language(
    language: str, query: str, environment: dict[str, str]
) -> None:
    file = Path(environment["XDG_DATA_HOME"]) / "sommelier" / "sommelier.sqlite3"
    engine = await migrated_sqlite(file)
    store = SqlDocumentStore(Sessions(engine))
    with use_language(language):
        found = await retrieve_relevant(query, store, NO_SPAN)
    await engine.dispose()
    assert found
    assert all("oble rot" in chunk.location for chunk in found)
