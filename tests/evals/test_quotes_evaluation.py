"""The evaluation of quotes: every metric catches the failure it is there for."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.documents.passages import Chunk, DocumentStore
from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.evals.dataset import Question, read_ground_truth
from agent.evals.report import Summary, as_json, rows, summaries
from agent.evals.run import QuotesVariant, Result, evaluate
from agent.turn import Deps
from db.documents.indexing import load_starter_documents
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore
from tests.databases import migrated_sqlite
from tests.doubles.model_server import ModelServer, Step, answer, answer_json
from tests.library import MUSCADET, OYSTERS, SUR_LIE, FakeLibrary, open_model, snippet

CHUNKS = (SUR_LIE, MUSCADET, OYSTERS)
Plan = Callable[[Question, dict[str, Any]], Step]


def perfect(question: Question, value: dict[str, Any]) -> Step:
    return answer_json(value)


def ideal(question: Question) -> dict[str, Any]:
    """What a model without fault answers."""
    if question.kind == "negative":
        return {"snippets": [], "summary": "Nothing on this.", "noResults": True}
    return {
        "snippets": [quoted(SUR_LIE), quoted(OYSTERS)],
        "summary": "Two passages.",
        "noResults": False,
    }


def quoted(chunk: Chunk, **other: str) -> dict[str, str]:
    return snippet(" ".join(chunk.text.split()[:8]), chunk) | other


class AllChunks(FakeLibrary):
    """Finds everything, whatever is asked."""

    async def search(self, queries: Any, limit: int = 6) -> list[Chunk]:
        return list(CHUNKS)


def quoting(label: str, model: LLM) -> QuotesVariant:
    return QuotesVariant(label, Run([model], deps=Deps()), AllChunks())


async def run(server: ModelServer, plan: Plan = perfect) -> Summary:
    """What became of the 24 questions over three chunks, each answered as `plan` says."""
    (summary,) = summaries(await results_of(server, plan))
    return summary


async def results_of(server: ModelServer, plan: Plan = perfect) -> list[Result]:
    questions = [replace_sources(question) for question in read_ground_truth()]
    server.script(*(plan(question, ideal(question)) for question in questions))
    async with open_model(server) as model:
        variant = quoting("B", model)
        found = evaluate([variant], questions, run="x", concurrency=1)
        results = [result async for result in found]
    return sorted(results, key=lambda result: [case.id for case in questions].index(result.case.id))


def replace_sources(question: Question) -> Question:
    known = ("methods/sur-lie.md",) if question.sources else ()
    return question.model_copy(update={"sources": known})


def on(*ids: str, step: Callable[[dict[str, Any]], Step]) -> Plan:
    """Perfect, except for the questions with these ids."""

    def plan(question: Question, value: dict[str, Any]) -> Step:
        return step(value) if question.id in ids else answer_json(value)

    return plan


async def test_a_perfect_model_passes_all_seven_metrics(model_server: ModelServer) -> None:
    summary = await run(model_server)
    assert summary.below == []
    assert {name: (average.score, average.items) for name, average in summary.metrics.items()} == {
        "json_parse": (1, 24),
        "schema": (1, 24),
        "verbatim": (1, 18),
        "attribution": (1, 18),
        "negative": (1, 6),
    }
    assert summary.figures["seconds p50"]
    assert len(model_server.requests) == 24
    assert summary.passed == 24
    assert summary.figures["requests"] == 1


def with_snippets(value: dict[str, Any], **other: str) -> dict[str, Any]:
    return value | {"snippets": [quoted(SUR_LIE, **other), quoted(OYSTERS, **other)]}


FENCED = on("keyword-1", step=lambda value: answer(f"```json\n{json.dumps(value)}\n```"))
CUT = on("multi-2", step=lambda value: answer(json.dumps(value)[:60], "length"))
NO_FLAG = on(
    "keyword-1",
    "multi-1",
    step=lambda value: answer_json({key: value[key] for key in ("snippets", "summary")}),
)
STITCHED = on(
    *(f"multi-{number}" for number in range(1, 5)),
    step=lambda value: answer_json(
        with_snippets(value, content="Sur lie means that lees are mostly dead yeast cells.")
    ),
)
WRONG_TITLE = on(
    "keyword-2", step=lambda value: answer_json(with_snippets(value, sourceTitle="Lees"))
)
EAGER = on(
    "negative-3",
    step=lambda value: answer_json(value | {"snippets": [quoted(SUR_LIE)], "noResults": False}),
)

PLANTED: dict[str, tuple[Plan, list[str]]] = {
    "a fence around one": (FENCED, ["json_parse"]),
    "one cut off": (CUT, ["json_parse"]),
    "two without noResults": (NO_FLAG, ["schema"]),
    "four stitched together": (STITCHED, ["verbatim"]),
    "one wrong title": (WRONG_TITLE, ["attribution"]),
    "one quote for a negative": (EAGER, ["negative"]),
}


@pytest.mark.parametrize(("plan", "caught"), PLANTED.values(), ids=PLANTED.keys())
async def test_a_planted_failure_is_caught_by_its_metric(
    model_server: ModelServer, plan: Plan, caught: list[str]
) -> None:
    summary = await run(model_server, plan)
    assert set(caught) <= set(summary.below)
    assert not set(summary.below) & {"seconds p50", "seconds p95"}
    others = {"json_parse", "schema", "verbatim", "attribution", "negative"} - set(caught)
    cascade = {"json_parse": {"attribution"}, "schema": {"attribution"}}
    assert set(summary.below) & others <= cascade.get(caught[0], set())
    assert summary.passed < summary.items


@pytest.mark.parametrize(
    ("seconds", "caught"),
    [([6.0] * 24, ["seconds p50"]), ([11.0] * 2 + [1.0] * 22, ["seconds p95"])],
)
async def test_slow_answers_are_caught(
    model_server: ModelServer, seconds: list[float], caught: list[str]
) -> None:
    slow = [
        replace(result, outcome=replace(result.outcome, seconds=(taken,)))
        for result, taken in zip(await results_of(model_server), seconds, strict=True)
    ]
    assert summaries(slow)[0].below == caught


async def test_the_table_has_thresholds_and_marks_what_is_below(model_server: ModelServer) -> None:
    results = await results_of(model_server, NO_FLAG)
    table = {cells[0]: cells[1:] for cells in rows(summaries(results))}
    assert table["json_parse 100%"] == ["100% of 24"]
    assert table["schema > 95%"] == ["92% of 24 ✗"]
    assert table["all passed"] == ["22 of 24"]
    data = json.loads(json.dumps(as_json("x", results)))
    assert data["variants"][0]["below"] == ["schema", "attribution"]
    assert "schema: noResults" in str(data["results"][0]["marks"])


class TestGroundTruth:
    """The 24 questions, over the starter documents."""

    @pytest.fixture
    async def starter(self, tmp_path: Path) -> AsyncIterator[DocumentStore]:
        engine = await migrated_sqlite(tmp_path / "library.sqlite3")
        store = SqlDocumentStore(Sessions(engine))
        await load_starter_documents(store)
        yield store
        await engine.dispose()

    async def test_the_known_sources_are_retrieved(self, starter: DocumentStore) -> None:
        missed = []
        for question in read_ground_truth():
            paths = [chunk.path for chunk in await starter.search([question.query], 6)]
            missed += [
                (question.id, source)
                for source in question.sources
                if not any(path.endswith(source) for path in paths)
            ]
        assert len(missed) <= 1, missed
