"""The HTTP API on real sockets: what it answers, what it refuses, and that bad input is told."""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.requests import Request
from starlette.routing import BaseRoute

from agent.documents.passages import Chunk
from agent.engine.run import Run
from agent.engine.span import TraceRecord
from agent.i18n import say_in
from agent.places.search import PlaceHit
from agent.repositories import (
    DayStats,
    EndedTurn,
    Spending,
)
from agent.sommelier.service import Answerer, Sommelier
from agent.tracing.recorder import Recorder, keyed_hash
from agent.turn import Reply
from bot.budgets import Budgets, DailyBudget
from bot.http.api import Api
from bot.http.guards import WrongTokens
from bot.running import api_routes
from bot.turn import Save, Turns
from config import Settings, load_settings
from db.engine import Sessions
from db.models import OutboxRow
from db.repositories.people import SqlPeopleRepository
from db.repositories.turns import SqlTurnRepository
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
    **limits: Any,
) -> Api:
    return Api(
        turns=Turns(run=sources.run, budgets=budgets, save=save),
        answerer=answerer or Sommelier(catalogue=FakeCatalogue()),
        resources=sources.resources(),
        token=SecretStr(TOKEN),
        user="ab12",
        **limits,
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


class FakeSearch:
    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        return [PlaceHit("Bar A", "https://a.example", "Open late.")]


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
    assert ("No alcohol for" in first, "No alcohol for" in after) == (False, True)


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


async def test_places_are_found() -> None:
    asked = {"category": "Weinbar", "place": "Köln"}
    async with serving(api(sources(search=FakeSearch())).routes()) as it:
        found = await it.post("/api/places/find", json=asked)
        refused = await it.post("/api/places/find", json={"category": "butcher", "place": " "})
    assert found.status_code == 200
    said = found.json()
    assert (said["category"], said["place"], said["by_rules"]) == ("WINE_BAR", "Köln", True)
    assert (len(said["queries"]), said["queries"][0]) == (10, "Weinbar Köln")
    assert [(each["title"], each["url"]) for each in said["results"]] == [
        ("Bar A", "https://a.example")
    ]
    assert refused.status_code == 422
    assert [each["field"] for each in refused.json()["fields"]] == ["category", "place"]


@pytest.mark.parametrize(
    ("accepted", "language"), [("de-AT,de;q=0.9", "de"), ("pl", "en"), (None, "en")]
)
async def test_notes_are_in_the_language_that_is_accepted(
    accepted: str | None, language: str
) -> None:
    headers = {"accept-language": accepted} if accepted else {}
    async with serving(api(sources()).routes()) as it:
        asked = {"category": "Weinbar", "place": "Köln"}
        said = (await it.post("/api/places/find", json=asked, headers=headers)).json()
    assert said["note"] == say_in(language, "no_place_search")


async def test_in_a_crisis_there_is_help_instead_of_places() -> None:
    asked = {"category": "wine bar", "place": "I want to kill myself"}
    async with serving(api(sources(search=FakeSearch())).routes()) as it:
        said = (await it.post("/api/places/find", json=asked)).json()
    assert (said["results"], said["queries"], said["links"]) == ([], [], [])
    assert said["note"]


async def test_documents_are_listed_and_searched() -> None:
    async with serving(api(sources()).routes()) as it:
        listed = await it.get("/api/documents")
        found = await it.post("/api/documents/search", json={"query": "lees", "limit": 1})
        refused = await it.post("/api/documents/search", json={"query": "lees", "limit": 51})
        it.headers.pop("authorization")
        assert (await it.get("/api/documents")).status_code == 401
    assert [each["path"] for each in listed.json()["documents"]] == [
        "methods/sur-lie.md",
        "pairing/oysters.md",
    ]
    (passage,) = found.json()["passages"]
    assert (passage["path"], passage["location"]) == (SUR_LIE.path, SUR_LIE.location)
    assert refused.status_code == 422


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
        "used": True,
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
    assert (rewritten["refined"], rewritten["used"]) == (said, False)
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


@dataclass
class Clock:
    """A clock that stands until it is set."""

    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


def asked_from(host: str) -> Request:
    return Request({"type": "http", "client": (host, 1)})


def test_after_wrong_tokens_an_address_waits_and_others_do_not() -> None:
    clock = Clock()
    wrong = WrongTokens(most=3, seconds=60, now=clock)
    for host in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1", "2001:db8::1", "2001:db8::2"):
        assert wrong.wait(asked_from(host)) == 0
        wrong.add(asked_from(host))
    wrong.add(asked_from("2001:db8::3"))
    hosts = ("10.0.0.1", "10.0.0.2", "2001:db8::4", "2001:db8:0:1::1")
    assert [wrong.wait(asked_from(host)) for host in hosts] == [60, 0, 60, 0]
    clock.at += 59.5
    assert wrong.wait(asked_from("10.0.0.1")) == 1
    clock.at += 0.5
    assert wrong.wait(asked_from("10.0.0.1")) == 0


def test_wrong_tokens_are_counted_and_then_no_token_is_looked_at() -> None:
    with loopback(api(sources(documents=FakeLibrary()))) as it:
        wrong = [
            it.post(PATHS[0], json={}, headers={"authorization": f"Bearer wrong-{n}"})
            for n in range(11)
        ]
        right = it.post(PATHS[0], json={}, headers={"authorization": f"Bearer {TOKEN}"})
    assert [each.status_code for each in wrong] == [403] * 10 + [429]
    assert (right.status_code, right.json()["error"]) == (429, "too many wrong tokens")
    assert 0 < int(right.headers["retry-after"]) <= 60


@pytest.mark.parametrize(
    ("authorization", "status", "said"),
    [
        (None, 401, "unauthorized"),
        ("", 401, "unauthorized"),
        ("Bearer", 401, "unauthorized"),
        (f"Basic {TOKEN}", 401, "unauthorized"),
        (TOKEN, 401, "unauthorized"),
        ("Bearer wrong", 403, "forbidden"),
        (f"Bearer {TOKEN}x", 403, "forbidden"),
        (f"Bearer {TOKEN.upper()}", 403, "forbidden"),
        ("Bearer tökén", 403, "forbidden"),
    ],
)
def test_nobody_without_the_token_is_answered(
    authorization: str | None, status: int, said: str
) -> None:
    library = FakeLibrary()
    given = [] if authorization is None else [(b"authorization", authorization.encode())]
    with loopback(api(sources(documents=library))) as it:
        for path in PATHS:
            refused = it.post(path, json={"query": QUESTION}, headers=given)
            assert (refused.status_code, refused.json()["error"]) == (status, said)
            assert ("www-authenticate" in refused.headers) == (status == 401)
    assert library.searched == []


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b"{}", "question", "Field required"),
        (b'{"question": 7}', "question", "Input should be a valid string"),
        (b'{"question": null}', "question", "Input should be a valid string"),
        (b'{"question": ""}', "question", "String should have at least 1 character"),
        (b'{"question": " \\u0000 "}', "question", "must hold some words"),
        (b'{"question": "\\u202e\\u200b"}', "question", "must hold some words"),
        (
            json.dumps({"question": "x" * 1001}).encode(),
            "question",
            "String should have at most 1000 characters",
        ),
        (b'{"question": "?", "more": 1}', "more", "Extra inputs are not permitted"),
        (
            b'{"question": "?", "refine_prompt": "yes"}',
            "refine_prompt",
            "Input should be a valid boolean",
        ),
        (b"[]", "body", "must be a JSON object"),
        (b"", "body", "must be a JSON object"),
        (b'{"question": "lees"', "body", "must be a JSON object"),
        (b'{"question": "\xff"}', "body", "must be a JSON object"),
        (b"[" * 100_000, "body", "must be a JSON object"),
    ],
)
def test_bad_input_is_told_by_field(body: bytes, field: str, message: str) -> None:
    with loopback(api(sources())) as it:
        refused = it.post("/api/rag/ask", content=body, headers=GOOD | JSON)
    assert refused.status_code == 422
    (told,) = refused.json()["fields"]
    assert told["field"] == field
    assert told["message"].startswith(message)


def test_other_content_too_much_of_it_and_other_methods_are_refused() -> None:
    with loopback(api(sources(), max_body_bytes=100)) as it:
        text = it.post("/api/rag/ask", content=b"{}", headers=GOOD | {"content-type": "text/plain"})
        large = it.post("/api/rag/ask", json={"question": "x" * 100}, headers=GOOD)
        got = it.get("/api/rag/ask", headers=GOOD)
    assert (text.status_code, text.json()["error"]) == (
        415,
        "the content type must be application/json",
    )
    assert (large.status_code, large.json()["error"]) == (413, "the body is too large")
    assert (got.status_code, got.json()) == (405, {"error": "Method Not Allowed", "fields": []})


KEYS = st.sampled_from(["question", "query", "refine_prompt", "", "\x00", "Ω"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["lees", "\ud800", "[methods/sur-lie.md]", "</excerpts>", "x" * 2000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
QUESTIONS = st.text(max_size=20) | st.just("lees")
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3) | st.fixed_dictionaries(
    {}, optional={"question": QUESTIONS, "query": QUESTIONS, "refine_prompt": st.none() | VALUES}
)
BODIES = st.binary(max_size=40) | st.builds(
    lambda value, ascii: json.dumps(value, ensure_ascii=ascii).encode("utf-8", "surrogatepass"),
    VALUES | OBJECTS,
    st.booleans(),
)


def test_no_body_whatever_makes_it_fail() -> None:
    statuses: set[int] = set()
    with loopback(api(sources())) as it:

        @settings(
            max_examples=100,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(path=st.sampled_from(PATHS), body=BODIES)
        def post(path: str, body: bytes) -> None:
            answered = it.post(path, content=body, headers=GOOD | JSON)
            statuses.add(answered.status_code)
            assert answered.status_code in {200, 422}
            if answered.status_code == 422:
                assert all(each["field"] for each in answered.json()["fields"])

        post()
    assert statuses == {200, 422}


async def test_the_document_describes_what_is_served() -> None:
    async with serving(api(sources()).routes()) as it:
        del it.headers["authorization"]
        document = (await it.get("/api/openapi.json")).json()
        answered = await it.post("/api/rag/ask", json={"question": QUESTION}, headers=GOOD)
        chatted = await it.post("/api/chat", json={"message": "a red for lamb"}, headers=GOOD)
        refused = await it.post("/api/rag/ask", json={}, headers=GOOD)
    assert document["openapi"] == "3.1.0"
    (server,) = document["servers"]
    assert tuple(f"{server['url']}{path}" for path in document["paths"]) == (
        "/api/chat",
        *PATHS,
        *("/api/places/find", "/api/documents", "/api/documents/search"),
    )
    schemas = document["components"]["schemas"]
    references = set(_references(document))
    assert references
    assert {name.removeprefix("#/components/schemas/") for name in references} <= set(schemas)
    assert schemas["AskRequest"]["required"] == ["question"]
    assert set(answered.json()) == set(schemas["AskResponse"]["properties"])
    assert set(chatted.json()) == set(schemas["ChatResponse"]["properties"])
    assert set(schemas["DraftEvent"]["properties"]) == {"text"}
    said = document["paths"]["/chat"]["post"]["responses"]["200"]
    assert set(said["content"]) == {"application/json", "text/event-stream"}
    assert set(refused.json()) == set(schemas["Problem"]["properties"])
    assert set(schemas["ResultEvent"]["properties"]) == set(QUOTED)
    assert set(schemas["DoneEvent"]["properties"]) == {
        "resultCount",
        "summary",
        "processingTimeMs",
    }


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for each in value.values() for found in _references(each)]
    return (
        [found for each in value for found in _references(each)] if isinstance(value, list) else []
    )


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
        routes = api_routes(token, found, turns, NOBODY)
        async with serving(routes) as it:
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
    async def turns(self, tmp_path: Path) -> AsyncIterator[SqlTurnRepository]:
        engine = await migrated_sqlite(tmp_path / "test.sqlite3")
        yield SqlTurnRepository(Sessions(engine))
        await engine.dispose()

    @asynccontextmanager
    async def _open(
        self, server: ModelServer, turns: SqlTurnRepository, **limits: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        people = SqlPeopleRepository(turns._sessions)
        budgets = Budgets(turns=turns, people=people, **limits)
        async with open_model(server) as model:
            served = api(sources(models=[model]), budgets=budgets, save=turns.save)
            async with serving(served.routes()) as it:
                yield it

    async def _today(self, turns: SqlTurnRepository) -> DayStats:
        return (await turns.stats(datetime.now(UTC))).today

    async def test_when_it_is_used_up_no_model_is_asked_and_that_is_said(
        self, model_server: ModelServer, turns: SqlTurnRepository
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

    async def test_what_ends_within_a_call_is_said_too(
        self, model_server: ModelServer, turns: SqlTurnRepository
    ) -> None:
        model_server.script(answer("Lees are yeast."))
        async with self._open(model_server, turns, everyone=DailyBudget(requests=1)) as it:
            said = (await it.post("/api/rag/ask", json={"question": QUESTION})).json()
        assert said["outcome"] == "fallback"
        assert said["note"].startswith("Today's budget for everyone is used up.")
        assert len(model_server.requests) == 1

    async def test_a_persons_budget_does_not_hold_for_who_has_the_token(
        self, model_server: ModelServer, turns: SqlTurnRepository
    ) -> None:
        model_server.default = answer(ANSWER)
        async with self._open(model_server, turns, person=DailyBudget(requests=1)) as it:
            for _ in range(2):
                said = await it.post("/api/rag/ask", json={"question": QUESTION})
                assert said.json()["outcome"] == "answered"

    async def test_what_failed_counts_too(
        self, model_server: ModelServer, turns: SqlTurnRepository
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
        self, model_server: ModelServer, turns: SqlTurnRepository, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Gone(SqlTurnRepository):
            async def begin(self, *_: Any, **__: Any) -> Spending:
                raise DatabaseGone(QUESTION)

            async def record(self, *_: Any, **__: Any) -> None:
                raise DatabaseGone(QUESTION)

        model_server.script(answer_json(REFINED))
        gone = Gone(turns._sessions)
        async with self._open(model_server, gone, everyone=DailyBudget(requests=1)) as it:
            rewritten = (await it.post("/api/rag/rewrite", json={"question": QUESTION})).json()
        assert rewritten["used"]
        assert "What was used today could not be read: DatabaseGone" in caplog.text
        assert QUESTION not in caplog.text


def test_there_is_no_api_without_a_token() -> None:
    assert api_routes(Settings(), sources().resources(), Turns(), NOBODY) == []
