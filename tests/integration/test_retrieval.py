"""The contract of the document search, on SQLite and on Postgres."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.documents.embedding import Embedder, EmbeddingError
from db.documents.chunking import Section
from db.documents.reading import Document
from db.documents.store import SqlDocumentStore
from db.engine import Sessions
from db.word_index import extract_terms

_hashes = count()


def document(path: str, *texts: str, title: str = "") -> Document:
    sections = tuple(
        Section((f"Part {number}",), text) for number, text in enumerate(texts, 1)
    )
    return Document(path, title or path, "text", str(next(_hashes)), 1, sections)


CORPUS = (
    document(
        "lees.md", "Lees are dead yeast.", "Sur lie means on the lees.", title="Lees"
    ),
    document(
        "tannin.md", "Tannin dries the mouth, and comes from skins.", title="Tannin"
    ),
    document("loire.md", "Muscadet rests on its lees until spring.", "Chinon is red."),
    document(
        "rhone.md", "Côte-Rôtie smells of violets.", "Viognier smells of apricots."
    ),
    document("asti.md", "葡萄酒酸度很高。", "Das Säuregerüst trägt den Wein."),
)


class WordEmbedder(Embedder):
    """Knows what some words mean: one axis for each of a few subjects."""

    subjects = ("yeast lees sediment", "bitter tannin skins", "floral violets perfume")

    def __init__(self) -> None:
        self.name = "words-1"
        self.broken = False

    async def embed(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        if self.broken:
            raise EmbeddingError("words-1 is down")
        return [self._vector(extract_terms(text)) for text in texts]

    def _vector(self, words: Sequence[str]) -> list[float]:
        known = [set(extract_terms(subject)) for subject in self.subjects]
        vector = [
            0.1,
            *(float(sum(word in subject for word in words)) for subject in known),
        ]
        return [value / math.hypot(*vector) for value in vector]


async def filled(
    sessions: Sessions, embedder: WordEmbedder | None = None
) -> SqlDocumentStore:
    store = SqlDocumentStore(sessions, embedder=embedder)
    for one in CORPUS:
        assert await store.save(one) == ["added"]
    return store


@pytest.mark.parametrize(
    ("query", "first", "count"),
    [
        ("what are lees?", "Lees are dead yeast.", 3),
        ("smell of apricots", "Viognier smells of apricots.", 2),
        ("COTE ROTIE", "Côte-Rôtie smells of violets.", 1),
        ("drying tannins", "Tannin dries the mouth, and comes from skins.", 1),
        ("葡萄酒的酸度", "葡萄酒酸度很高。", 1),
        ("sauregerust", "Das Säuregerüst trägt den Wein.", 1),
    ],
)
async def test_the_rarer_word_and_the_heading_weigh_more_in_any_form(
    sessions: Sessions, query: str, first: str, count: int
) -> None:
    found = await (await filled(sessions)).search([query])
    assert (found[0].text, len(found)) == (first, count)


async def test_one_document_does_not_crowd_out_the_others(sessions: Sessions) -> None:
    store = await filled(sessions)
    await store.save(document("long.md", *["lees lees lees"] * 10))
    paths = [chunk.path for chunk in await store.search(["lees"])]
    assert sorted(paths) == ["lees.md"] * 2 + ["loire.md"] + ["long.md"] * 3
    await store.save(document("gravel.md", *["Gravel keeps warm."] * 10))
    assert [chunk.position for chunk in await store.search(["gravel"])] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]


async def test_a_copy_of_a_document_is_not_found_twice(sessions: Sessions) -> None:
    store, one = (
        await filled(sessions),
        document("b.md", "Gravel keeps warm.", title="Soil"),
    )
    await store.save(
        one, replace(one, path="a.md"), document("c.md", "Gravel is stone.")
    )
    assert len(await store.search(["gravel"])) == 2
    await store.remove("b.md")
    assert {chunk.path for chunk in await store.search(["gravel"])} == {"a.md", "c.md"}


async def test_changes_by_another_process_are_searched(
    sessions: Sessions, engine: AsyncEngine
) -> None:
    here, there = await filled(sessions), SqlDocumentStore(Sessions(engine))
    assert len(await here.search(["lees"])) == len(await there.search(["lees"])) == 3
    await there.remove("lees.md")
    await there.save(document("gravel.md", "Gravel keeps warm."))
    assert await there.save(document("tannin.md", "Polyphenols.")) == ["updated"]
    assert [chunk.text for chunk in await here.search(["skins polyphenols"])] == [
        "Polyphenols."
    ]
    assert [chunk.path for chunk in await here.search(["lees"])] == ["loire.md"]
    assert [chunk.path for chunk in await here.search(["gravel"])] == ["gravel.md"]


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


async def test_meaning_finds_what_words_do_not(
    sessions: Sessions, embedder: WordEmbedder
) -> None:
    store = await filled(sessions, embedder)
    assert await store.embed_missing() == 9
    assert await store.embed_missing() == 0
    found = await store.search(["sediment"], limit=3)
    assert sorted(chunk.path for chunk in found) == ["lees.md", "lees.md", "loire.md"]
    assert (await store.search(["perfume"], limit=1))[
        0
    ].text == "Côte-Rôtie smells of violets."
    both = await store.search(["bitter red wine"], limit=2)
    assert {chunk.path for chunk in both} == {"tannin.md", "loire.md"}


async def test_vectors_of_another_model_are_not_compared(
    sessions: Sessions, embedder: WordEmbedder
) -> None:
    await (await filled(sessions, embedder)).embed_missing()
    other = WordEmbedder()
    other.name = "words-2"
    store = SqlDocumentStore(sessions, embedder=other)
    assert await store.search(["sediment"]) == []
    assert await store.embed_missing() == 9


async def test_a_failing_embedder_leaves_word_search_and_is_logged_once(
    sessions: Sessions, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    store = await filled(sessions, embedder)
    await store.embed_missing()
    embedder.broken = True
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert len(await store.search(["lees"])) == 3
        await store.save(document("gravel.md", "Gravel keeps warm."))
        assert await store.embed_missing() == 0
    assert caplog.messages == ["Documents are searched by words only: words-1 is down"]
    embedder.broken = False
    assert await store.embed_missing() == 1
    assert len(await store.search(["sediment"])) == 6
