"""The HTTP API on real sockets: its answers, and the requests that it refuses."""

import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from agent.documents.passages import Chunk
from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.sommelier.service import Answerer
from agent.turn import Reply, StoredMessage
from bot.http.api import Api
from bot.runner import TurnRunner
from db.budgets import DailyBudgets
from db.engine import Sessions
from db.models import MessageRow, TurnRow
from db.repositories.commits import Commits
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.fakes import CHINON, fake_sommelier
from tests.faults.turns import INFORMATIONAL, search, valid
from tests.library import REFINED, SUR_LIE, FakeLibrary, open_model, sent, snippet
from tests.running import RecordingTracer, Sources
from tests.serving import serving as serve

TOKEN = "a-long-random-token-5c1f"
AUTHORIZATION = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}
QUESTION = "What does sur lie mean?"
UNAVAILABLE = "the request could not be worked on, try again later"
PATHS = ("/api/rag/rewrite", "/api/rag/ask", "/api/research/query")
ANSWER = "Sur lie means that a wine rests on its fine lees [methods/sur-lie.md]."
QUOTED = snippet("Sur lie means that a wine rests on its fine lees.")
ALSO_QUOTED = snippet("Stirring the lees gives a creamier texture.")


class DatabaseGone(Exception):
    """An error whose text contains the question, like the errors of databases."""


class BrokenLibrary(FakeLibrary):
    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        raise DatabaseGone(f"SELECT {queries}")


class BrokenAnswerer:
    async def answer(
        self,
        message: str,
        run: Run,
        attachment: object = None,
        *,
        history: Sequence[StoredMessage] = (),
    ) -> Reply:
        raise DatabaseGone(message)


@asynccontextmanager
async def serving(
    *models: LLM,
    runner: TurnRunner | None = None,
    answerer: Answerer | None = None,
    **parts: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the API with these models, and yield a client that has the token."""
    sources = Sources(
        documents=parts.pop("documents", FakeLibrary()), models=models, **parts
    )
    api = Api(
        runner=replace(runner or TurnRunner(), base_run=sources.run),
        answerer=answerer or fake_sommelier(),
        resources=sources.resources(),
        client_hash="ab12",
    )
    async with serve(routers=[api.build_router()], token=SecretStr(TOKEN)) as running:
        running.client.headers.update(AUTHORIZATION)
        yield running.client


@asynccontextmanager
async def serving_model(
    server: ModelServer, **parts: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the API with the model of `server`, and yield a client."""
    async with open_model(server) as model, serving(model, **parts) as client:
        yield client


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return server-sent events as pairs of name and data, without comments."""
    assert text.endswith("\n\n")
    blocks = text.removesuffix("\n\n").split("\n\n")
    lines = [block.split("\n") for block in blocks if not block.startswith(":")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in lines
    ]


LAMB = {"message": "A red for lamb with Gugelhupf, please"}
ASKED = {"question": QUESTION}
HISTORY = [
    {"role": "user", "content": "I am pregnant. A red?"},
    {"role": "assistant", "content": "Gladly."},
]


async def test_the_sommelier_answers_with_the_history_that_is_sent(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), valid(), answer_json(INFORMATIONAL))
    async with serving_model(model_server) as client:
        answered = (await client.post("/api/chat", json=LAMB)).json()
        pregnant = (
            await client.post("/api/chat", json=LAMB | {"history": HISTORY})
        ).json()
    assert answered.pop("answer").count(CHINON.label) == 1
    assert answered == {"wine_ids": [CHINON.id], "note": "", "outcome": "answered"}
    before, reply, asked = (
        message["content"] for message in sent(model_server, 2)["messages"][1:]
    )
    assert (before, asked) == (HISTORY[0]["content"], LAMB["message"])
    assert HISTORY[1]["content"] in reply
    assert pregnant["outcome"] == "answered"
    first, _, last = (
        sent(model_server, at)["messages"][0]["content"] for at in range(3)
    )
    assert "This guest must not have alcohol" in last
    assert "This guest must not have alcohol" not in first


async def test_an_answer_comes_with_the_passages_of_its_citations(
    model_server: ModelServer,
) -> None:
    model_server.script(answer(ANSWER))
    async with serving_model(model_server) as client:
        answered = await client.post("/api/rag/ask", json=ASKED)
    citation = {
        "number": 1,
        "path": "methods/sur-lie.md",
        "title": "Sur lie",
        "location": "What the lees are",
        "passage": SUR_LIE.text.split("\n\n", maxsplit=1)[0],
    }
    body = answered.json()
    assert (body["text"], body["citations"]) == (ANSWER, [citation])
    assert body["footnoted"] == ANSWER.replace("methods/sur-lie.md", "1")
    assert (body["outcome"], body["enough_information"]) == ("answered", True)
    assert body["refinement"]["fallback_reason"] == "disabled"
    assert "chunks" not in body


async def test_the_refined_question_is_searched_for_and_the_original_answered(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(REFINED), answer(ANSWER))
    library = FakeLibrary()
    async with serving_model(model_server, documents=library) as client:
        answered = await client.post(
            "/api/rag/ask", json=ASKED | {"refine_prompt": True}
        )
    refinement = answered.json()["refinement"]
    assert refinement["refined"] == REFINED["refined_query"]
    assert refinement["fallback_reason"] is None
    assert library.searched == [
        (QUESTION, REFINED["refined_query"], *REFINED["variants"])
    ]
    assert sent(model_server)["messages"][-1]["content"].endswith(
        f"QUESTION: {QUESTION}"
    )


async def test_quotes_are_sent_one_by_one_followed_by_their_number_and_a_summary(
    model_server: ModelServer,
) -> None:
    model_server.script(
        answer_json(
            {
                "snippets": [QUOTED, ALSO_QUOTED],
                "summary": "A definition.",
                "noResults": False,
            }
        )
    )
    query = {"query": "lees"}
    async with (
        serving_model(model_server) as client,
        client.stream("POST", "/api/research/query", json=query) as streamed,
    ):
        parts = [part async for part in streamed.aiter_raw()]
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["transfer-encoding"] == "chunked"
    assert [part.split(b"\n")[0] for part in parts] == [
        b"event: result",
        b"event: result",
        b"event: done",
    ]
    *results, (name, done) = events(b"".join(parts).decode())
    assert results == [("result", QUOTED), ("result", ALSO_QUOTED)]
    assert name == "done"
    assert done.pop("processingTimeMs") >= 0
    assert done == {"resultCount": 2, "summary": "A definition."}


@pytest.mark.parametrize(
    ("stated", "expected_help"),
    [("I want to kill myself", "988"), ("I am 15", "under 18")],
)
async def test_in_a_crisis_or_under_age_the_user_gets_help_and_no_model_is_asked(
    model_server: ModelServer, stated: str, expected_help: str
) -> None:
    question = f"{stated}, what does sur lie mean?"
    async with serving_model(model_server) as client:
        answered = (
            await client.post("/api/rag/ask", json={"question": question})
        ).json()
        streamed = await client.post("/api/research/query", json={"query": question})
        rewritten = (
            await client.post("/api/rag/rewrite", json={"question": question})
        ).json()
    assert expected_help in answered["text"]
    assert (answered["outcome"], answered["citations"]) == ("help", [])
    ((name, done),) = events(streamed.text)
    assert (name, done["resultCount"]) == ("done", 0)
    assert expected_help in done["summary"]
    assert (rewritten["refined"], rewritten["fallback_reason"]) == (question, "refused")
    assert model_server.requests == []


async def test_an_internal_error_is_one_sentence_and_no_question_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    bodies = {
        "/api/rag/ask": "question",
        "/api/research/query": "query",
        "/api/chat": "message",
    }
    async with serving(documents=BrokenLibrary(), answerer=BrokenAnswerer()) as client:
        for path, field in bodies.items():
            failed = await client.post(path, json={field: "Gevrey for Aunt Rosalind"})
            assert (failed.status_code, failed.json()) == (503, {"detail": UNAVAILABLE})
    assert "A turn failed: DatabaseGone" in caplog.text
    assert "Rosalind" not in caplog.text


async def test_requests_without_the_token_are_refused() -> None:
    library = FakeLibrary()
    wrong = ["", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer tökén"]
    async with serving(documents=library) as client:
        for path in ("/api/chat", *PATHS):
            for authorization in wrong:
                given = [(b"authorization", authorization.encode())]
                refused = await client.post(path, json={"odd": 1}, headers=given)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
                assert "Authorization: Bearer <API_TOKEN>" in refused.json()["detail"]
    assert library.searched == []


async def test_invalid_input_is_reported_by_field() -> None:
    bodies = {
        b"{}": "Field required",
        b'{"question": "\\u202e\\u200b"}': "must contain visible text",
        json.dumps({"question": "x" * 1001}).encode(): "String should have at most",
        b'{"question": "lees"': "JSON decode error",
    }
    async with serving() as client:
        for body, message in bodies.items():
            refused = await client.post("/api/rag/ask", content=body, headers=JSON)
            assert refused.status_code == 422
            (problem,) = refused.json()["detail"]
            assert message in problem["msg"]
        for body in (b"[" * 100_000, b'{"question": "\xff"}', b"\x00"):
            refused = await client.post("/api/rag/ask", content=body, headers=JSON)
            assert refused.status_code in {400, 422}
            assert refused.json()["detail"]
        got = await client.get("/api/rag/ask")
    assert (got.status_code, got.json()) == (405, {"detail": "Method Not Allowed"})


async def test_a_question_is_rewritten_or_answered_and_each_call_is_a_turn_in_the_trace(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(REFINED), answer(ANSWER))
    tracer = RecordingTracer()
    async with serving_model(
        model_server, runner=TurnRunner(open_trace_root=tracer)
    ) as client:
        response = await client.post("/api/rag/rewrite", json=ASKED)
        await client.post("/api/rag/ask", json=ASKED)
    expected = {
        name: value for name, value in REFINED.items() if name != "refined_query"
    }
    expected |= {
        "original": QUESTION,
        "refined": REFINED["refined_query"],
        "fallback_reason": None,
    }
    assert response.json() == expected
    rewritten, answered = (trace.root for trace in tracer.turns)
    assert rewritten.output == REFINED["refined_query"]
    assert "fine lees [1]" in str(answered.output)
    assert (answered.metadata["outcome"], answered.metadata["llm_calls"]) == (
        "answered",
        1,
    )
    assert (tracer.inputs, tracer.sessions) == ([QUESTION] * 2, [("api", "ab12")] * 2)


async def test_when_the_global_budget_is_used_up_no_model_is_asked_and_the_note_says_so(
    model_server: ModelServer, sqlite_sessions: Sessions
) -> None:
    budgets = DailyBudgets(sqlite_sessions, total_cost_usd=0.0001)
    model_server.script(answer(ANSWER, usage=(900, 100)))
    async with serving_model(
        model_server,
        runner=TurnRunner(
            budgets=budgets, commits=Commits(sqlite_sessions, budgets=budgets)
        ),
    ) as client:
        first = (await client.post("/api/rag/ask", json=ASKED)).json()
        second = (
            await client.post("/api/rag/ask", json=ASKED | {"refine_prompt": True})
        ).json()
        streamed = await client.post("/api/research/query", json={"query": "lees"})
    async with sqlite_sessions() as session:
        today = (await session.scalars(select(TurnRow).order_by(TurnRow.at))).all()
    *results, (_, done) = events(streamed.text)
    assert (first["outcome"], second["outcome"]) == ("answered", "fallback")
    assert second["note"].startswith(
        "Today's allowance for everyone is used up. It resets in"
    )
    assert second["by_model"] is False
    assert second["citations"], "the passages are shown all the same"
    assert second["refinement"]["fallback_reason"] == "budget"
    assert len(results) == done["resultCount"] == 1
    assert "Today's allowance for everyone is used up." in done["summary"]
    assert len(model_server.requests) == 1
    assert [turn.outcome for turn in today] == ["answered", "fallback", "fallback"]
    assert {turn.user_id for turn in today} == {0}


async def test_questions_of_clients_were_stored_as_the_history_of_chat_0(
    sqlite_sessions: Sessions,
) -> None:
    runner = TurnRunner(commits=Commits(sqlite_sessions))
    async with serving(runner=runner) as client:
        for words in ("a red for lamb", "and a white?"):
            assert (
                await client.post("/api/chat", json={"message": words})
            ).status_code == 200
    async with sqlite_sessions() as session:
        assert await session.scalar(select(func.count()).select_from(TurnRow)) == 2
        assert await session.scalar(select(func.count()).select_from(MessageRow)) == 0
