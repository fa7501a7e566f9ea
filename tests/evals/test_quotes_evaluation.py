"""The evaluation of quotes: every metric catches the failure it is there for."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.documents.store import Chunk, DocumentStore
from agent.engine.messages import LLMResponse, Usage
from agent.engine.prices import Price, Prices
from agent.evals.quotes_report import (
    METRICS,
    UNPRICED,
    as_json,
    as_markdown,
    failed_metrics,
    monthly_cost,
)
from agent.evals.quotes_run import (
    MODES,
    Question,
    Run,
    evaluate_quotes,
    ground_truth,
    percentile,
    scored,
)
from db.documents.indexing import STARTER, load_starter_documents
from db.engine import session_factory
from db.repositories.documents import SqlDocumentStore
from tests.databases import migrated_sqlite
from tests.doubles.model_server import ModelServer, Step, answer, answer_json, error
from tests.library import MUSCADET, OYSTERS, SUR_LIE, FakeLibrary, open_model, sent

CHUNKS = (SUR_LIE, MUSCADET, OYSTERS)
Plan = Callable[[Question, dict[str, Any]], Step]


def perfect(question: Question, value: dict[str, Any]) -> Step:
    return answer_json(value)


def ideal(question: Question) -> dict[str, Any]:
    """What a model without fault answers."""
    if question.kind == "negative":
        return {"snippets": [], "summary": "Nothing on this.", "noResults": True}
    return {
        "snippets": [snippet(SUR_LIE), snippet(OYSTERS)],
        "summary": "Two passages.",
        "noResults": False,
    }


def snippet(chunk: Chunk, **other: str) -> dict[str, str]:
    return {
        "content": " ".join(chunk.text.split()[:8]),
        "sourceId": chunk.document_id,
        "sourceTitle": chunk.title,
        "sourceLocation": chunk.location,
        "relevance": "It answers.",
    } | other


class AllChunks(FakeLibrary):
    """Finds everything, whatever is asked."""

    async def search(self, queries: Any, limit: int = 6) -> list[Chunk]:
        return list(CHUNKS)


def ticking(*seconds: float) -> Callable[[], float]:
    """A clock that gives each request its seconds, the last ones for ever."""

    def ticks() -> Iterator[float]:
        now = 0.0
        for number in range(10_000):
            yield now
            now += seconds[min(number, len(seconds) - 1)]
            yield now

    clock = ticks()
    return lambda: next(clock)


async def run(
    server: ModelServer, plan: Plan = perfect, clock: Callable[[], float] | None = None
) -> Run:
    """One run of the 24 questions over three chunks, each answered as `plan` says."""
    questions = [replace_sources(question) for question in ground_truth()]
    server.script(*(plan(question, ideal(question)) for question in questions))
    async with open_model(server) as model:
        (result,) = await evaluate_quotes(
            {"B": model},
            documents=AllChunks(),
            questions=questions,
            clock=clock or ticking(0.5),
        )
    return result


def replace_sources(question: Question) -> Question:
    known = ("methods/sur-lie.md",) if question.sources else ()
    return question.model_copy(update={"sources": known})


def on(*ids: str, step: Callable[[dict[str, Any]], Step]) -> Plan:
    """Perfect, except for the questions with these ids."""

    def plan(question: Question, value: dict[str, Any]) -> Step:
        return step(value) if question.id in ids else answer_json(value)

    return plan


async def test_a_perfect_model_passes_all_seven_metrics(model_server: ModelServer) -> None:
    result = await run(model_server)
    assert failed_metrics(result) == []
    assert result.values == {
        "json_parse": 1,
        "schema": 1,
        "verbatim": 1,
        "attribution": 1,
        "negative": 1,
        "latency_p50": 0.5,
        "latency_p95": 0.5,
    }
    assert len(model_server.requests) == 24
    assert not any(score.problem for score in result.scores)


def with_snippets(value: dict[str, Any], **other: str) -> dict[str, Any]:
    return value | {"snippets": [snippet(SUR_LIE, **other), snippet(OYSTERS, **other)]}


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
EMPTY_HANDED = on(
    *(f"multi-{number}" for number in range(1, 5)),
    step=lambda value: answer_json(value | {"snippets": [], "noResults": True}),
)
WRONG_TITLE = on(
    "keyword-2", step=lambda value: answer_json(with_snippets(value, sourceTitle="Lees"))
)
SWAPPED = on(
    "keyword-2",
    step=lambda value: answer_json(
        value | {"snippets": [snippet(SUR_LIE) | {"sourceId": "oysters"}]}
    ),
)
EAGER = on(
    "negative-3",
    step=lambda value: answer_json(value | {"snippets": [snippet(SUR_LIE)], "noResults": False}),
)
CONTRADICTORY = on(
    "negative-3", step=lambda value: answer_json(value | {"snippets": [snippet(SUR_LIE)]})
)

PLANTED: dict[str, tuple[Plan, list[str]]] = {
    "a fence around one": (FENCED, ["json_parse"]),
    "one cut off": (CUT, ["json_parse"]),
    "two without noResults": (NO_FLAG, ["schema"]),
    "four stitched together": (STITCHED, ["verbatim"]),
    "one wrong title": (WRONG_TITLE, ["attribution"]),
    "one of another source": (SWAPPED, ["attribution"]),
    "one quote for a negative": (EAGER, ["negative"]),
    "noResults and a quote": (CONTRADICTORY, ["negative"]),
}


@pytest.mark.parametrize(("plan", "caught"), PLANTED.values(), ids=PLANTED.keys())
async def test_a_planted_failure_is_caught_by_its_metric(
    model_server: ModelServer, plan: Plan, caught: list[str]
) -> None:
    result = await run(model_server, plan)
    assert set(caught) <= set(failed_metrics(result))
    assert not set(failed_metrics(result)) & {"latency_p50", "latency_p95"}
    others = {"json_parse", "schema", "verbatim", "attribution", "negative"} - set(caught)
    cascade = {"json_parse": {"attribution"}, "schema": {"attribution"}}
    assert set(failed_metrics(result)) & others <= cascade.get(caught[0], set())
    assert any(score.problem for score in result.scores)


async def test_a_model_that_never_quotes_does_not_pass(model_server: ModelServer) -> None:
    assert failed_metrics(await run(model_server, EMPTY_HANDED)) == ["verbatim", "attribution"]


@pytest.mark.parametrize(
    ("seconds", "caught"),
    [([6.0], ["latency_p50"]), ([11.0] * 2 + [1.0], ["latency_p95"])],
)
async def test_slow_answers_are_caught(
    model_server: ModelServer, seconds: list[float], caught: list[str]
) -> None:
    assert failed_metrics(await run(model_server, clock=ticking(*seconds))) == caught


async def test_a_server_that_refuses_the_key_fails_everything_but_latency(
    model_server: ModelServer,
) -> None:
    result = await run(model_server, lambda question, value: error(401))
    assert failed_metrics(result) == [metric.key for metric in METRICS if metric.share]
    assert {score.problem for score in result.scores} == {"no response"}


async def test_tokens_and_costs(model_server: ModelServer) -> None:
    def metered(question: Question, value: dict[str, Any]) -> Step:
        return replace(answer_json(value), usage=(3020, 307))

    result = await run(model_server, metered)
    assert result.cost_per_query == pytest.approx(0.01062)
    assert monthly_cost(result, 10, 20) == pytest.approx(63.72)
    report = as_markdown([result])
    assert "| B (gpt-4o) | 3,020 | 307 | $0.0106 |" in report
    assert "| 100 people × 20 queries a day | $637.20 |" in report
    assert UNPRICED not in report


def test_prices_of_the_settings_count() -> None:
    question = ground_truth()[0]
    response = LLMResponse(content="{}", model="house-7b-2026", usage=Usage(3000, 300))
    prices = Prices({"house-7b": Price(prompt=1, completion=2)})
    assert scored(question, response, [SUR_LIE], prices).cost_usd == pytest.approx(0.0036)
    at_home = replace(response, base_url="http://localhost:11434/v1")
    unpriced = scored(question, at_home, [SUR_LIE])
    assert unpriced.cost_usd == 0
    assert UNPRICED in as_markdown([Run("B", "house-7b-2026", (unpriced,))])


def test_where_nothing_is_retrieved_nobody_is_asked_and_no_results_is_right() -> None:
    known, negative = ground_truth()[0], ground_truth()[-1]
    assert scored(negative, None, []).negative is True
    assert scored(negative, None, [SUR_LIE]).negative is False
    missed = scored(known, None, [])
    assert (missed.verbatim, missed.problem) == (0, "nothing was retrieved")


async def test_the_report_names_what_failed_where(model_server: ModelServer) -> None:
    result = await run(model_server, NO_FLAG)
    report = as_markdown([result])
    assert "| JSON parse | 100% | 100% |" in report
    assert "| Schema compliance | > 95% | **92% ✗** |" in report
    assert "| Snippets per query |  | 1.5 |" in report
    assert "| Passed |  | 5/7 |" in report
    assert "- B, keyword-1: schema: noResults" in report
    data = json.loads(json.dumps(as_json([result])))
    assert data["runs"][0]["failed"] == ["schema", "attribution"]
    assert len(data["runs"][0]["questions"]) == 24


async def test_several_modes_are_compared_side_by_side(model_server: ModelServer) -> None:
    questions = ground_truth()[:1]
    model_server.script(*[answer_json(ideal(questions[0]))] * 3)
    seen: list[tuple[str, int, int]] = []
    async with (
        open_model(model_server, mode=MODES["A"]) as a,
        open_model(model_server, mode=MODES["B"]) as b,
        open_model(model_server, mode=MODES["C"]) as c,
    ):
        runs = await evaluate_quotes(
            {"A": a, "B": b, "C": c},
            documents=AllChunks(),
            questions=questions,
            progress=lambda *done: seen.append(done),
        )
    assert [result.label for result in runs] == ["A", "B", "C"]
    formats = [sent(model_server, n).get("response_format", {}).get("type") for n in range(3)]
    assert formats == [None, "json_object", "json_schema"]
    assert seen == [("A", 1, 1), ("B", 1, 1), ("C", 1, 1)]
    assert "| Metric | Threshold | A | B | C |" in as_markdown(runs)


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(number) for number in range(1, 25)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (12, 23)
    assert percentile([], 0.5) == 0


class TestGroundTruth:
    """The 24 questions, over the starter documents."""

    def test_six_of_each_kind(self) -> None:
        kinds = Counter(question.kind for question in ground_truth())
        assert kinds == {"keyword": 6, "paraphrase": 6, "multi": 6, "negative": 6}
        assert len({question.id for question in ground_truth()}) == 24

    def test_every_known_source_is_a_starter_document(self) -> None:
        for question in ground_truth():
            assert all((STARTER / source).is_file() for source in question.sources)
            count = len(question.sources)
            assert count == 0 if question.kind == "negative" else count >= 1
            assert question.kind != "multi" or count >= 2

    @pytest.fixture
    async def starter(self, tmp_path: Path) -> AsyncIterator[DocumentStore]:
        engine = await migrated_sqlite(tmp_path / "library.sqlite3")
        store = SqlDocumentStore(session_factory(engine))
        await load_starter_documents(store)
        yield store
        await engine.dispose()

    async def test_the_known_sources_are_retrieved(self, starter: DocumentStore) -> None:
        missed = []
        for question in ground_truth():
            paths = [chunk.path for chunk in await starter.search([question.query], 6)]
            missed += [
                (question.id, source)
                for source in question.sources
                if not any(path.endswith(source) for path in paths)
            ]
        assert missed == []
