"""The HTTP API on real sockets: what it answers, what it refuses, and that bad input is told."""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from pydantic import SecretStr
from starlette.routing import BaseRoute

from agent.documents.passages import Chunk
from agent.engine.run import Run
from agent.sommelier.service import Answerer, Sommelier
from agent.tracing.recorder import Recorder, keyed_hash
from agent.tracing.records import TraceRecord
from agent.turn import Reply
from bot.budgets import Budgets, DailyBudget
from bot.http.api import Api
from bot.serving import api_of
from bot.turn import Save, Turns
from config import Settings, load_settings
from db.engine import Sessions
from db.models import OutboxRow
from db.records import DayStats, EndedTurn, Spending
from db.repositories.people import PeopleRepository
from db.repositories.turns import TurnRepository
from tests.databases import migrated_sqlite
from tests.doubles.model_server import ModelServer, answer, answer_json, error, paced
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import LoopbackServer, eventually
from tests.fakes import CHINON, FakeCatalogue
from tests.faults.turns import INFORMATIONAL, VALID, search, valid
from tests.library import SUR_LIE, FakeLibrary, open_model, sent
from tests.running import Sources
from tests.serving import serving as serve
from tests.traces import deliver

TOKEN = "a-long-random-token-5c1f"
GOOD = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}
QUESTION = "What does sur lie mean?"
SENTENCE = "the question could not be worked on, ask again later"
PATHS = ("/api/rag/rewrite", "/api/rag/ask", "/api/research/query")
REFINED = {
    "refined_query": "sur lie ageing on fine lees meaning",
    "variants": ["lees ageing", "wine on its lees", "resting on fine lees"],
    "keywords": ["lees"],
    "entities": [],
    "constraints": [],
    "ambiguities": [],
    "security_flags": [],
}
ANSWER = "Sur lie means that a wine rests on its fine lees [methods/sur-lie.md]."
QUOTED = {
    "content": "Sur lie means that a wine rests on its fine lees.",
    "sourceId": "lees",
    "sourceTitle": "Sur lie",
    "sourceLocation": "What the lees are",
    "relevance": "It is the definition.",
}


class DatabaseGone(Exception):
    """Its text holds what was asked, as that of database errors does."""


class BrokenLibrary(FakeLibrary):
    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        raise DatabaseGone(f"SELECT {queries}")


def api(
    sources: Sources,
    budgets: Budgets | None = None,
    save: Save | None = None,
    answerer: Answerer | None = None,
) -> Api:
    return Api(
        turns=Turns(run=sources.run, budgets=budgets, save=save),
        answerer=answerer or Sommelier(catalogue=FakeCatalogue()),
        resources=sources.resources(),
        token=SecretStr(TOKEN),
        user="ab12",
    )


def sources(**parts: Any) -> Sources:
    return Sources(documents=parts.pop("documents", FakeLibrary()), **parts)


@asynccontextmanager
async def serving(routes: Sequence[BaseRoute]) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole HTTP app with these routes, allowed in."""
    async with serve(routes=routes) as running:
        running.client.headers.update(GOOD)
        yield running.client


@contextmanager
def loopback(api: Api) -> Iterator[httpx.Client]:
    """A client of the API alone, which must bring its own token."""
    with (
        LoopbackServer(api.routes()) as server,
        httpx.Client(base_url=server.base_url, trust_env=False, verify=False) as client,
    ):
        yield client


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events as name and data, without comments."""
    assert text.endswith("\n\n")
    blocks = text.removesuffix("\n\n").split("\n\n")
    lines = [block.split("\n") for block in blocks if not block.startswith(":")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in lines
    ]


NOBODY = cast("Answerer", None)
STREAMED = GOOD | {"accept": "text/event-stream"}
LAMB = {"message": "A red for lamb, please"}
BEFORE = [
    {"role": "user", "content": "I am pregnant. A red?"},
    {"role": "assistant", "content": "Gladly."},
]


async def test_the_sommelier_answers_with_what_was_said_before(model_server: ModelServer) -> None:
    model_server.script(search(), valid(), answer_json(INFORMATIONAL))
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        answered = (await it.post("/api/chat", json=LAMB)).json()
        told = (await it.post("/api/chat", json=LAMB | {"history": BEFORE})).json()
    assert (answered["outcome"], answered["wine_ids"], answered["note"]) == (
        "answered",
        [CHINON.id],
        "",
    )
    assert CHINON.label in answered["answer"]
    before, reply, asked = (each["content"] for each in sent(model_server, 2)["messages"][1:])
    assert (before, asked) == (BEFORE[0]["content"], LAMB["message"])
    assert BEFORE[1]["content"] in reply
    assert told["outcome"] == "answered"
    first, _, after = (sent(model_server, each)["messages"][0]["content"] for each in range(3))
    assert ("No alcohol for this guest" in first, "No alcohol for this guest" in after) == (
        False,
        True,
    )


async def test_an_answer_comes_as_drafts_of_what_is_grounded_and_then_as_without(
    model_server: ModelServer,
) -> None:
    long = VALID | {"intro": "It costs 999 euros. For your lamb:", "closing": "It is fine. " * 20}
    for _ in range(2):
        model_server.script(search(), paced(answer_json(long), 200), answer_json(VALID))
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        whole = await it.post("/api/chat", json=LAMB)
        streamed = await it.post("/api/chat", json=LAMB, headers=STREAMED)
    *drafts, (last, done) = events(streamed.text)
    assert (streamed.headers["content-type"], streamed.headers["cache-control"]) == (
        "text/event-stream; charset=utf-8",
        "no-store",
    )
    assert {name for name, _ in drafts} == {"draft"}
    assert any(CHINON.label in each["text"] for _, each in drafts)
    assert "999" not in streamed.text
    assert (last, done) == ("done", whole.json())


async def test_who_goes_away_ends_the_request_to_the_model(model_server: ModelServer) -> None:
    model_server.script(search(), paced(answer_json(VALID | {"closing": "Fine. " * 500}), 40))
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        async with it.stream("POST", "/api/chat", json=LAMB, headers=STREAMED) as streamed:
            async for line in streamed.aiter_lines():
                if CHINON.label in line:
                    break
        await eventually(lambda: model_server.left == 1, seconds=10, otherwise=lambda: "goes on")
    assert len(model_server.requests) == 2


async def test_a_streamed_answer_that_fails_ends_with_what_it_would_be_without() -> None:
    class Broken:
        async def answer(self, message: str, run: Run, attached: object = None) -> Reply:
            raise DatabaseGone(message)

    async with serving(api(sources(), answerer=Broken()).routes()) as it:
        failed = await it.post("/api/chat", json=LAMB)
        streamed = await it.post("/api/chat", json=LAMB, headers=STREAMED)
        guarded = await it.post("/api/chat", json={"message": ""}, headers=STREAMED)
    assert (failed.status_code, streamed.status_code, guarded.status_code) == (503, 200, 422)
    assert events(streamed.text) == [("error", failed.json())]
    assert failed.json()["error"] == SENTENCE


async def test_an_answer_comes_with_what_its_citations_point_at(model_server: ModelServer) -> None:
    model_server.script(
        answer("Sur lie means that a wine rests on its fine lees [methods/sur-lie.md].")
    )
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        answered = await it.post("/api/rag/ask", json={"question": QUESTION})
    assert answered.status_code == 200
    assert answered.json() == {
        "question": QUESTION,
        "answer": "Sur lie means that a wine rests on its fine lees [methods/sur-lie.md].",
        "footnoted": "Sur lie means that a wine rests on its fine lees [1].",
        "citations": [
            {
                "number": 1,
                "path": "methods/sur-lie.md",
                "title": "Sur lie",
                "location": "What the lees are",
                "passage": SUR_LIE.text.split("\n\n", maxsplit=1)[0],
            }
        ],
        "enough_information": True,
        "by_model": True,
        "outcome": "answered",
        "refined_question": None,
        "fallback_reason": "disabled",
        "note": "",
    }


async def test_refinement_is_searched_for_and_the_original_question_is_answered(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(REFINED), answer(ANSWER))
    library = FakeLibrary()
    async with (
        open_model(model_server) as model,
        serving(api(sources(documents=library, models=[model])).routes()) as it,
    ):
        body = {"question": QUESTION, "refine_prompt": True}
        answered = (await it.post("/api/rag/ask", json=body)).json()
    assert answered["refined_question"] == REFINED["refined_query"]
    assert answered["fallback_reason"] is None
    assert library.searched == [(QUESTION, REFINED["refined_query"], *REFINED["variants"])]
    assert sent(model_server)["messages"][-1]["content"].endswith(f"QUESTION: {QUESTION}")


async def test_a_server_that_refuses_refinement_does_so_for_every_request() -> None:
    async with serving(api(sources(refinement=False)).routes()) as it:
        body = {"question": QUESTION, "refine_prompt": True}
        answered = (await it.post("/api/rag/ask", json=body)).json()
        rewritten = (await it.post("/api/rag/rewrite", json={"question": QUESTION})).json()
    assert answered["fallback_reason"] == rewritten["fallback_reason"] == "disabled"


async def test_a_question_is_rewritten_and_not_answered(model_server: ModelServer) -> None:
    model_server.script(answer_json(REFINED))
    library = FakeLibrary()
    async with (
        open_model(model_server) as model,
        serving(api(sources(documents=library, models=[model])).routes()) as it,
    ):
        rewritten = (await it.post("/api/rag/rewrite", json={"question": QUESTION})).json()
    expected = {key: value for key, value in REFINED.items() if key != "refined_query"}
    assert rewritten == expected | {
        "original": QUESTION,
        "refined": REFINED["refined_query"],
        "fallback_reason": None,
    }
    assert library.searched == []


async def test_passages_come_as_events_and_then_what_they_come_to(
    model_server: ModelServer,
) -> None:
    model_server.script(
        answer_json({"snippets": [QUOTED], "summary": "A definition.", "noResults": False})
    )
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        streamed = await it.post("/api/research/query", json={"query": "lees"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["cache-control"] == "no-store"
    result, (name, done) = events(streamed.text)
    assert result == ("result", QUOTED)
    assert name == "done"
    assert done.pop("processingTimeMs") >= 0
    assert done == {"resultCount": 1, "summary": "A definition."}


@pytest.mark.parametrize(
    ("told", "help_"),
    [
        ("I want to kill myself", "988"),
        ("I am 15", "under 18"),
        ("I'm an alcoholic", "nything with alcohol"),
    ],
)
async def test_who_must_not_drink_is_helped_and_no_model_is_asked(
    model_server: ModelServer, told: str, help_: str
) -> None:
    said = f"{told}, what does sur lie mean?"
    async with (
        open_model(model_server) as model,
        serving(api(sources(models=[model])).routes()) as it,
    ):
        answered = (await it.post("/api/rag/ask", json={"question": said})).json()
        streamed = await it.post("/api/research/query", json={"query": said})
        rewritten = (await it.post("/api/rag/rewrite", json={"question": said})).json()
    assert help_ in answered["answer"]
    assert (answered["outcome"], answered["citations"]) == ("care", [])
    ((name, done),) = events(streamed.text)
    assert (name, done["resultCount"]) == ("done", 0)
    assert help_ in done["summary"]
    assert (rewritten["refined"], rewritten["fallback_reason"]) == (said, "refused")
    assert model_server.requests == []


async def test_in_pregnancy_what_is_looked_up_says_so() -> None:
    said = "I'm pregnant, what does sur lie mean?"
    async with serving(api(sources()).routes()) as it:
        answered = (await it.post("/api/rag/ask", json={"question": said})).json()
        streamed = await it.post("/api/research/query", json={"query": said})
    assert "In pregnancy" in answered["note"]
    assert "In pregnancy" in streamed.text


async def test_an_event_is_one_line_whatever_a_reader_takes_for_the_end_of_one() -> None:
    text = "Lees of one\nof two\r\nof three\u2028of four\u2029of five\x85of six"
    odd = replace(SUR_LIE, text=text, title="Sur\u2028lie")
    async with serving(api(sources(documents=FakeLibrary((odd,)))).routes()) as it:
        streamed = await it.post("/api/research/query", json={"query": "lees"})
    lines = streamed.text.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["event", "data", "", "event", "data", ""]
    (_, result), _ = events(streamed.text)
    assert result["content"] == "Lees of one\nof two\r\nof three of four of five of six"
    assert result["sourceTitle"] == "Sur lie"


async def test_without_a_model_the_best_passages_are_given_and_it_is_said() -> None:
    async with serving(api(sources()).routes()) as it:
        streamed = await it.post("/api/research/query", json={"query": "lees"})
        answered = (await it.post("/api/rag/ask", json={"question": QUESTION})).json()
    *results, (_, done) = events(streamed.text)
    assert [name for name, _ in results] == ["result"] * 2
    assert done["resultCount"] == 2
    assert "No language model is configured" in done["summary"]
    assert answered["by_model"] is False
    assert {citation["path"] for citation in answered["citations"]} == {"methods/sur-lie.md"}


async def test_what_nothing_is_found_on_is_done_without_a_result() -> None:
    async with serving(api(sources(documents=FakeLibrary(()))).routes()) as it:
        streamed = await it.post("/api/research/query", json={"query": "lees"})
    ((name, done),) = events(streamed.text)
    assert (name, done["resultCount"]) == ("done", 0)


async def test_a_model_that_is_down_still_gives_an_answer() -> None:
    with ModelServer(default=error(500)) as down:
        async with open_model(down) as model, serving(api(sources(models=[model])).routes()) as it:
            answered = await it.post("/api/rag/ask", json={"question": QUESTION})
    assert answered.status_code == 200
    assert answered.json()["outcome"] == "fallback"
    assert len(answered.json()["citations"]) == 2


@pytest.mark.parametrize("path", PATHS)
async def test_a_failure_inside_is_one_sentence_and_nothing_asked_is_logged(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = sources(documents=BrokenLibrary())
    key = "query" if path.endswith("query") else "question"
    async with serving(api(broken).routes()) as it:
        answered = await it.post(path, json={key: "Gevrey for Aunt Rosalind"})
    if path == "/api/rag/rewrite":
        assert answered.status_code == 200  # rewriting needs no database
    else:
        assert (answered.status_code, answered.json()) == (503, {"error": SENTENCE, "fields": []})
        assert "A turn failed: DatabaseGone" in caplog.text
    assert "Rosalind" not in caplog.text


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer tökén"],
)
def test_nobody_without_the_token_is_answered(authorization: str | None) -> None:
    library = FakeLibrary()
    given = [] if authorization is None else [(b"authorization", authorization.encode())]
    with loopback(api(sources(documents=library))) as it:
        for path in PATHS:
            refused = it.post(path, json={"query": QUESTION}, headers=given)
            assert refused.status_code == 401
            assert refused.json()["error"] == "send the token: Authorization: Bearer <API_TOKEN>"
            assert refused.headers["www-authenticate"] == "Bearer"
    assert library.searched == []


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b"{}", "question", "Field required"),
        (b'{"question": 7}', "question", "Input should be a valid string"),
        (b'{"question": "\\u202e\\u200b"}', "question", "must hold some words"),
        (json.dumps({"question": "x" * 1001}).encode(), "question", "String should have at most"),
        (b'{"question": "?", "more": 1}', "more", "Extra inputs are not permitted"),
        (b'{"question": "lees"', "body", "JSON decode error"),
        (b"[]", "body", "Input should be a valid dictionary"),
    ],
)
def test_bad_input_is_told_by_field(body: bytes, field: str, message: str) -> None:
    with loopback(api(sources())) as it:
        refused = it.post("/api/rag/ask", content=body, headers=GOOD | JSON)
    assert refused.status_code == 422
    (told,) = refused.json()["fields"]
    assert told["field"] == field
    assert told["message"].startswith(message)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"question": "\xff"}', b"\x00"])
def test_what_is_no_json_is_refused_with_json(body: bytes) -> None:
    with loopback(api(sources())) as it:
        refused = it.post("/api/rag/ask", content=body, headers=GOOD | JSON)
        got = it.get("/api/rag/ask", headers=GOOD)
    assert refused.status_code in {400, 422}
    assert refused.json()["error"]
    assert (got.status_code, got.json()["error"]) == (405, "Method Not Allowed")


async def test_the_document_describes_what_is_served() -> None:
    async with serving(api(sources()).routes()) as it:
        document = (await it.get("/api/openapi.json")).json()
        answered = await it.post("/api/rag/ask", json={"question": QUESTION})
    assert set(document["paths"]) == {
        "/chat",
        *(path.removeprefix("/api") for path in PATHS),
    }
    schemas = document["components"]["schemas"]
    assert set(answered.json()) == set(schemas["AskResponse"]["properties"])
    said = document["paths"]["/chat"]["post"]["responses"]["200"]
    assert set(said["content"]) == {"application/json", "text/event-stream"}


async def test_a_call_is_a_turn_in_the_trace(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    model_server.script(
        answer_json(REFINED),
        answer(ANSWER),
    )
    traces: list[TraceRecord] = []

    async def save(ended: EndedTurn, messages: Sequence[OutboxRow] = ()) -> None:
        assert ended.trace is not None
        traces.append(ended.trace)

    token = load_settings(None, {"API_TOKEN": TOKEN, "HTTP_PORT": "0", "TRACE_USER_KEY": "key"})
    async with open_model(model_server) as model:
        found = sources(models=[model]).resources()
        turns = Turns(run=found.run, tracer=Recorder(), save=save)
        served = api_of(token, found, turns, NOBODY)
        assert served is not None
        async with serving(served.routes()) as it:
            await it.post("/api/rag/rewrite", json={"question": QUESTION})
            await it.post("/api/rag/ask", json={"question": QUESTION})
    await deliver(otlp_receiver, sessions, *traces)
    assert [each.name for each in traces] == ["rewrite", "ask"]
    rewritten, answered = sorted(
        (span for span in otlp_receiver.spans if span.name == "turn"), key=lambda span: span.start
    )
    assert rewritten.output == REFINED["refined_query"]
    assert (answered.input, answered.output) == (QUESTION, ANSWER)
    assert (answered.metadata["outcome"], answered.metadata["llm_calls"]) == ("answered", 1)
    assert {span.session for span in otlp_receiver.spans} == {"api"}
    assert {span.user for span in otlp_receiver.spans} == {keyed_hash("api", TOKEN, "key")}
    assert TOKEN not in repr(otlp_receiver.spans)


class TestBudget:
    """What everyone may use in a day holds over HTTP too."""

    @pytest.fixture
    async def turns(self, tmp_path: Path) -> AsyncIterator[TurnRepository]:
        engine = await migrated_sqlite(tmp_path / "test.sqlite3")
        yield TurnRepository(Sessions(engine))
        await engine.dispose()

    @asynccontextmanager
    async def _open(
        self, server: ModelServer, turns: TurnRepository, **limits: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        people = PeopleRepository(turns._sessions)
        budgets = Budgets(turns=turns, people=people, **limits)
        async with open_model(server) as model:
            served = api(sources(models=[model]), budgets=budgets, save=turns.save)
            async with serving(served.routes()) as it:
                yield it

    async def _today(self, turns: TurnRepository) -> DayStats:
        return (await turns.stats(datetime.now(UTC))).today

    async def test_when_it_is_used_up_no_model_is_asked_and_that_is_said(
        self, model_server: ModelServer, turns: TurnRepository
    ) -> None:
        model_server.script(answer(ANSWER, usage=(900, 100)))
        async with self._open(model_server, turns, everyone=DailyBudget(requests=1)) as it:
            first = (await it.post("/api/rag/ask", json={"question": QUESTION})).json()
            body = {"question": QUESTION, "refine_prompt": True}
            second = (await it.post("/api/rag/ask", json=body)).json()
            rewritten = (await it.post("/api/rag/rewrite", json={"question": QUESTION})).json()
            *results, (_, done) = events(
                (await it.post("/api/research/query", json={"query": "lees"})).text
            )
        assert (first["outcome"], second["outcome"]) == ("answered", "fallback")
        assert second["note"].startswith("Today's budget for everyone is used up. It resets in")
        assert "No language model" not in second["note"] + done["summary"]
        assert (second["by_model"], len(second["citations"])) == (False, 2)
        assert second["fallback_reason"] == rewritten["fallback_reason"] == "budget"
        assert len(results) == done["resultCount"] == 2
        assert "Today's budget for everyone is used up." in done["summary"]
        assert len(model_server.requests) == 1
        today = await self._today(turns)
        assert (today.turns, today.people, today.tokens) == (4, 0, 1000)
        assert today.outcomes == {"answered": 1, "fallback": 3}

    async def test_what_failed_counts_too(
        self, model_server: ModelServer, turns: TurnRepository
    ) -> None:
        model_server.script(answer_json(REFINED, finish_reason="stop"))
        async with open_model(model_server) as model:
            broken = sources(documents=BrokenLibrary(), models=[model])
            async with serving(api(broken, save=turns.save).routes()) as it:
                body = {"question": QUESTION, "refine_prompt": True}
                assert (await it.post("/api/rag/ask", json=body)).status_code == 503
        today = await self._today(turns)
        assert today.outcomes == {"failed": 1}
        assert today.tokens > 0

    async def test_without_a_database_to_count_in_it_still_answers(
        self, model_server: ModelServer, turns: TurnRepository, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Gone(TurnRepository):
            async def begin(self, *_: Any, **__: Any) -> Spending:
                raise DatabaseGone(QUESTION)

            async def record(self, *_: Any, **__: Any) -> None:
                raise DatabaseGone(QUESTION)

        model_server.script(answer_json(REFINED))
        gone = Gone(turns._sessions)
        async with self._open(model_server, gone, everyone=DailyBudget(requests=1)) as it:
            rewritten = (await it.post("/api/rag/rewrite", json={"question": QUESTION})).json()
        assert rewritten["fallback_reason"] is None
        assert "The usage of today could not be read: DatabaseGone" in caplog.text
        assert QUESTION not in caplog.text


def test_there_is_no_api_without_a_token() -> None:
    assert api_of(Settings(), sources().resources(), Turns(), NOBODY) is None
