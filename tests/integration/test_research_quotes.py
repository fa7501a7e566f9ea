"""/quotes: verbatim passages (ADR "structured snippet output"); real client, scripted server."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.documents.answer import answer_question
from agent.documents.passages import Chunk
from agent.documents.quotes import (
    QuoteCache,
    Quotes,
    find_quotes,
    find_verbatim,
    quote_documents_tool,
)
from agent.engine.contract import OutputContract
from agent.engine.loop import generate_agentic_response
from agent.engine.messages import ResponseMode
from agent.engine.run import Limits, Run
from agent.engine.wire import Dialect
from agent.turn import Deps
from bot.resources import models_of
from config import load_settings
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    answer_json,
    error,
    refusal,
    tool_call,
)
from tests.fakes import children, names, root_span
from tests.library import (
    OYSTERS,
    SUR_LIE,
    FakeLibrary,
    feedback_of,
    open_model,
    sent,
    snippet,
)

QUERY = "lees of wine at the harvest, oysters"
FAST = Limits(seconds=10, model_tries=1)


def quoted(*snippets: dict[str, str], **other: Any) -> Step:
    said = {"snippets": snippets, "summary": "Lees are old yeast.", "noResults": False}
    return answer_json(said | other)


LEES = snippet("Lees are mostly dead yeast cells.")
LEAN = snippet(OYSTERS.text, OYSTERS)
FORGED = snippet("Lees glow in the dark.")
NONE = quoted(summary="The sources do not speak of it.", noResults=True)


async def find(
    server: ModelServer,
    *steps: Step,
    library: FakeLibrary | None = None,
    mode: ResponseMode = "json_object",
) -> Quotes:
    server.script(*steps)
    async with open_model(server, dialect=Dialect.of_openai(mode)) as model:
        return await find_quotes(
            QUERY, run=Run([model], limits=FAST), documents=library or FakeLibrary()
        )


def contents(found: Quotes) -> Sequence[str]:
    return [quote.content for quote in found.quotes]


async def test_4096_tokens_without_streaming(model_server: ModelServer) -> None:
    assert contents(await find(model_server, answer('{"snip', "length"), quoted(LEAN)))
    assert sent(model_server)["max_completion_tokens"] == 4096
    assert "stream" not in sent(model_server)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("prompt", None), ("json_object", "json_object"), ("json_schema", "json_schema")],
)
async def test_each_mode_asks_for_its_response_format(
    model_server: ModelServer, mode: ResponseMode, kind: str | None
) -> None:
    model_server.strict = True
    assert contents(await find(model_server, quoted(LEAN), mode=mode))
    sent_format = sent(model_server).get("response_format", {})
    assert sent_format.get("type") == kind
    if kind == "json_schema":
        schema = sent_format["json_schema"]["schema"]
        assert schema["required"] == ["snippets", "summary", "noResults"]
        assert set(schema["$defs"]["Snippet"]["properties"]) == set(LEES)


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        ([quoted(LEES)], ["small"]),
        ([quoted(FORGED), quoted(LEES)], ["small"] * 2),
        ([*[quoted(FORGED)] * 3, quoted(LEES)], [*["small"] * 3, "large"]),
        ([error(503), quoted(LEES)], ["small", "large"]),
    ],
)
async def test_a_cheap_model_is_asked_first_and_a_better_one_if_its_answers_fail(
    model_server: ModelServer, steps: Sequence[Step], asked: Sequence[str]
) -> None:
    model_server.script(*steps)
    root = root_span()
    async with (
        open_model(model_server, model="small") as small,
        open_model(model_server, model="large") as large,
    ):
        run = Run([large], limits=FAST, deps=Deps(models={"quotes": small}), span=root)
        assert contents(await find_quotes(QUERY, run=run, documents=FakeLibrary()))
    assert [sent(model_server, at)["model"] for at in range(len(asked))] == asked
    assert root.record.metadata["tier"] == len({*asked})


async def test_mode_b_is_the_default(model_server: ModelServer) -> None:
    model_server.script(quoted(LEAN))
    models, _ = models_of(
        load_settings(
            None, {"OPENAI_BASE_URL": model_server.base_url, "LLM_MODEL": "x"}
        )
    )
    await find_quotes(QUERY, run=Run(models, limits=FAST), documents=FakeLibrary())
    assert sent(model_server)["response_format"] == {"type": "json_object"}
    for model in models:
        await model.close()


async def test_the_cheap_model_is_held_to_the_strict_schema(
    model_server: ModelServer,
) -> None:
    names_of_models = {"LLM_MODEL": "large", "QUOTES_MODEL": "small"}
    settings = load_settings(
        None, {"OPENAI_BASE_URL": model_server.base_url} | names_of_models
    )
    models, special = models_of(settings)
    model_server.script(answer("{"), quoted(FORGED), quoted(FORGED), quoted(LEES))
    run = Run(models, limits=FAST, deps=Deps(models=special))
    assert contents(await find_quotes(QUERY, run=run, documents=FakeLibrary()))
    formats = [sent(model_server, at)["response_format"]["type"] for at in range(4)]
    assert formats == [*["json_schema"] * 3, "json_object"]
    for model in (*models, *special.values()):
        await model.close()


async def test_where_documents_are_equally_good_the_cheap_model_is_not_asked(
    model_server: ModelServer,
) -> None:
    library = FakeLibrary([replace(SUR_LIE, score=1.0), replace(OYSTERS, score=0.9)])
    model_server.script(quoted(LEES), answer(f"Lees are yeast [{SUR_LIE.path}]."))
    async with (
        open_model(model_server, model="small") as small,
        open_model(model_server, model="large") as large,
    ):
        run = Run([large], limits=FAST, deps=Deps(models={"quotes": small}))
        assert contents(await find_quotes(QUERY, run=run, documents=library))
        assert (await answer_question(QUERY, run=run, documents=library)).by_model
    assert [sent(model_server, at)["model"] for at in (0, 1)] == ["large", "large"]


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        ("the   FINE\nlees", "the fine lees"),
        ("… The 'fine' lees - so", "The “fine” lees – so"),
    ],
)
def test_white_space_case_and_kinds_of_signs_make_no_difference(
    said: str, stands: str
) -> None:
    assert find_verbatim(said, f"Before. {stands} After.") == stands


@pytest.mark.parametrize("said", ["", "Lees, rest.", "Leesrest.", "ees r"])
def test_any_other_difference_makes_it_no_quote(said: str) -> None:
    assert find_verbatim(said, "Lees rest.") is None


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (quoted(snippet("Lees consist of dead yeast.")), "as one contiguous passage"),
        (
            quoted(snippet("rests on its fine lees. Muscadet sur lie")),
            "as one contiguous passage",
        ),
        (
            quoted(snippet("Lees are mostly", sourceId="Lees")),
            "no source has the id Lees",
        ),
        (quoted(LEES, noResults=True), "noResults is true but snippets is not empty"),
        (
            quoted(snippet("Lees are mostly", sourceTitle="Sur Lie")),
            "has the title Sur lie",
        ),
        (quoted(), "snippets is empty but noResults is false"),
        (
            answer_json({"snippets": [LEES], "summary": "On lees."}),
            "noResults: Field required",
        ),
    ],
)
async def test_feedback_names_the_rule_that_an_answer_breaks(
    model_server: ModelServer, step: Step, problem: str
) -> None:
    found = await find(model_server, step, NONE)
    assert (found.quotes, found.no_results) == ((), True)
    assert found.summary == "The sources do not speak of it."
    assert problem in feedback_of(model_server)


async def test_a_quote_that_still_fails_is_dropped_and_never_shown(
    model_server: ModelServer,
) -> None:
    found = await find(model_server, *[quoted(LEES, LEES, FORGED)] * 3)
    assert contents(found) == ["Lees are mostly dead   yeast cells."]
    assert found.outcome == "salvaged"


async def test_at_most_eight_quotes_are_shown(model_server: ModelServer) -> None:
    pieces = [
        f"Oysters and wine go {way} well."
        for way in "so very too oh as how ay yes no".split()
    ]
    rich = replace(OYSTERS, text=" ".join(pieces))
    many = quoted(*(snippet(piece, rich) for piece in pieces))
    found = await find(model_server, *[many] * 3, library=FakeLibrary((rich,)))
    assert "there are 9 snippets, at most 8 are allowed" in feedback_of(model_server)
    assert contents(found) == pieces[:8]


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([error(500)], "fallback"),
        ([quoted(FORGED)] * 3, "fallback"),
        ([refusal("No.")], "refused"),
    ],
)
async def test_without_an_answer_the_passages_are_shown_unless_it_was_declined(
    model_server: ModelServer, steps: Sequence[Step], outcome: str
) -> None:
    found = await find(model_server, *steps)
    assert (found.outcome, found.by_model) == (outcome, False)
    assert (OYSTERS.text in contents(found)) == (outcome == "fallback")
    assert len(model_server.requests) == len(steps)


async def test_the_same_query_over_the_same_sources_and_models_is_answered_for_15_minutes(
    model_server: ModelServer,
) -> None:
    now = 0.0
    cache = QuoteCache(clock=lambda: now)

    async def is_asked(
        query: str = QUERY, chunk: Chunk = SUR_LIE, **settings: Any
    ) -> bool:
        async with open_model(model_server, **settings) as model:
            library = FakeLibrary((chunk,))
            found = await find_quotes(
                query, run=Run([model]), documents=library, cache=cache
            )
        return not found.cached

    model_server.script(*[quoted(LEES)] * 5)
    assert await is_asked()
    now = 15 * 60 - 1
    assert not await is_asked(f" {QUERY.upper()} ")
    assert await is_asked("other lees")
    assert await is_asked(chunk=replace(SUR_LIE, text=f"{SUR_LIE.text} More."))
    assert await is_asked(model="gpt-4o-mini")
    now = 15 * 60
    assert await is_asked()


async def test_as_a_tool_its_requests_count_in_the_usage_and_trace_of_the_turn(
    model_server: ModelServer,
) -> None:
    model_server.script(
        tool_call("quote_documents", {"query": "lees?"}), NONE, answer("Yeast.")
    )
    root = root_span()
    async with open_model(model_server) as model:
        run, contract = Run([model], limits=FAST, span=root), OutputContract(str)
        tools = [quote_documents_tool(FakeLibrary())]
        response = await generate_agentic_response(
            "?", run=run, contract=contract, tools=tools
        )
    assert response.text == "Yeast."
    assert run.usage.requests == len(model_server.requests) == 3
    (tool,) = [child for child in children(root.trace) if child.kind == "tool"]
    assert names(root.trace, tool) == [
        "retrieve.documents",
        "llm.answer",
        "guard.output",
    ]
