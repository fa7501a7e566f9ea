"""Answers that are streamed: the same response, usage and retries, and drafts on the way."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.engine.contract import Evidence
from agent.engine.current_draft import CurrentDraft
from agent.engine.llm import LLMService
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.parsing import parse_draft
from agent.engine.response_text import parse_unfinished
from agent.engine.run import Limits, Run, Stop
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine_tools import wine_tools
from agent.text import split_words
from tests.doubles.model_server import (
    ModelServer,
    Script,
    answer_json,
    cut,
    paced,
    reasoning_only,
    tool_calls,
)
from tests.doubles.model_server import call as called
from tests.doubles.server import eventually
from tests.fakes import CHINON, FakeCatalogue
from tests.faults.turns import INVENTED, QUESTION, VALID, search, service, valid


async def streamed(
    server: ModelServer,
    *,
    draft: CurrentDraft | None = None,
    stop: Stop | None = None,
    llm: LLMService | None = None,
) -> AgenticResponse[SommelierResponse]:
    model = llm or service(server)
    run = Run(
        [model],
        draft=draft or CurrentDraft(),
        stop=stop or Stop(),
        limits=Limits(seconds=10),
    )
    try:
        return await generate_agentic_response(
            QUESTION,
            run=run,
            contract=SOMMELIER,
            tools=wine_tools(FakeCatalogue()),
        )
    finally:
        if llm is None:
            await model.close()


SCRIPTS: dict[str, list[Script]] = {
    "a valid answer": [search(), valid()],
    "an answer that is mended": [search(), answer_json(INVENTED), valid()],
    "a cut stream": [search(), cut(json.dumps(VALID)), valid()],
    "thoughts first": [search(), reasoning_only("hm, lamb", json.dumps(VALID))],
    "two calls at once": [
        tool_calls(
            [
                called("search_wines", {"styles": ["red"]}),
                called("search_wines", {"limit": 3}),
            ]
        ),
        valid(),
    ],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_streamed_turn_is_the_turn_that_comes_whole(name: str) -> None:
    came = []
    for streaming in ("whole", "yes"):
        with ModelServer(*SCRIPTS[name], streaming=streaming) as server:
            response = await streamed(server)
        assert all(request.json["stream"] for request in server.requests)
        assert response.usage.requests == len(server.requests)
        assert response.usage.tokens.prompt_tokens == server.usage.prompt
        assert response.usage.tokens.completion_tokens == server.usage.completion
        asked = [request.json["messages"] for request in server.requests]
        told = response.text, response.outcome, response.error_types, response.messages
        came.append((*told, response.usage.cost_usd, asked))
    assert came[0] == came[1]


@pytest.mark.parametrize(
    ("streaming", "streams"),
    [("no", [True, False, False]), ("no_usage", [True, False])],
)
async def test_a_server_that_declines_to_stream_is_asked_without(
    streaming: Any, streams: list[bool]
) -> None:
    with ModelServer(search(), valid(), streaming=streaming) as server:
        response = await streamed(server)
    assert response.outcome == "answered"
    assert [bool(request.json.get("stream")) for request in server.requests] == streams


async def test_a_stop_ends_the_request_and_keeps_what_was_grounded(
    model_server: ModelServer,
) -> None:
    long = VALID | {"closing": "It is fresh. " * 400}
    model_server.script(search(), paced(answer_json(long), 400))
    stop, draft, llm = Stop(), CurrentDraft(), service(model_server)
    turn = asyncio.create_task(streamed(model_server, draft=draft, stop=stop, llm=llm))
    await eventually(lambda: "fresh" in draft.text())
    stop.request()
    stop.request()  # by an impatient user
    response = await turn
    assert response.outcome == "stopped"
    assert CHINON.label in response.text
    assert "It is fresh." in response.text
    assert response.usage.requests == 2
    assert response.usage.tokens.completion_tokens > model_server.usage.completion
    model_server.script(*[search(), valid()] * 20)
    for _ in range(20):
        assert (await streamed(model_server, llm=llm)).has_text
    await llm.close()


EVIDENCE = Evidence({CHINON.id: CHINON}, [QUESTION])
GOOD = (
    "For your lamb: fresh and fine.",
    "It has grip. It suits the meat; 12.5 % is enough!",
    "Serve it at 16 °C, e.g. from a carafe. Enjoy.",
    "Il est frais. C'est parfait avec l'agneau.",
    'She said "yes". A \\ and a \n line.',
)
BAD = (
    "The Château Margaux 1990 is better.",
    "Only € 97 today.",
    "See https://evil.example/now for more.",
)
INVENTED_WORDS = frozenset({"margaux", "1990", "97", "evil", "nowhere"})
texts = st.lists(st.sampled_from(GOOD + BAD), max_size=2).map(" ".join)
wines = st.fixed_dictionaries(
    {"wine_id": st.sampled_from([CHINON.id, CHINON.id[:-1], "chateau-nowhere-2019"])},
    optional={
        "description": texts,
        "name": st.sampled_from([CHINON.label, "Château Nowhere"]),
    },
)
answers = st.fixed_dictionaries(
    {"intro": texts, "wines": st.lists(wines, max_size=2)},
    optional={
        "closing": texts,
        "response_type": st.sampled_from(["recommendation", "informational"]),
    },
)


@settings(max_examples=100, deadline=None, database=None)
@given(answers, st.booleans())
def test_no_draft_holds_a_word_that_is_not_grounded(
    said: dict[str, Any], escaped: bool
) -> None:
    text = json.dumps(said, ensure_ascii=escaped)
    known = None
    for end in range(len(text) + 1):
        if (value := parse_unfinished(text[:end])) == known:
            continue
        known = value
        draft = parse_draft(text[:end], SOMMELIER, EVIDENCE)
        if not draft.text:
            continue
        assert not INVENTED_WORDS & set(split_words(draft.text)), (
            text[:end],
            draft.text,
        )
        assert draft.answer is not None
        assert {wine.wine_id for wine in draft.answer.wines} <= EVIDENCE.sources.keys()
