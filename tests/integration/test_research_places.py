"""/find: ten queries (ADR "query generator"), and the places that a search finds for them."""

import json
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from agent.engine.errors import ToolError
from agent.engine.messages import ToolCall
from agent.engine.run import Limits, Run
from agent.engine.tools import Toolbox
from agent.places import find
from agent.places.find import Place, brave, find_places, find_places_tool, searxng
from agent.places.queries import (
    PlaceQueries,
    QueryGenerationFailed,
    build_rule_based_queries,
    generate_queries,
    load_categories,
)
from agent.safety.state import SafetyState
from agent.turn import Deps, Person
from tests.doubles.model_server import ModelServer, Step, answer, answer_json, error
from tests.library import TEN, feedback_of, open_model, place_search, sent

NINE = TEN[:9]
FAST = Limits(seconds=10, model_tries=1)


async def generate(server: ModelServer, *steps: Step) -> PlaceQueries:
    server.script(*steps)
    async with open_model(server) as model:
        return await generate_queries(
            "WINE_BAR", "Bilbao", run=Run([model], limits=FAST)
        )


async def test_the_prompt_has_the_hint_of_the_category_and_no_format_is_asked_for(
    model_server: ModelServer,
) -> None:
    await generate(model_server, answer_json(TEN))
    rules, asked = sent(model_server)["messages"]
    hints = [
        name
        for name, category in load_categories().items()
        if category.hint in rules["content"]
    ]
    assert hints == ["WINE_BAR"]
    assert asked["content"] == 'Category: WINE_BAR. Place: "Bilbao".'
    assert "response_format" not in sent(model_server)


@pytest.mark.parametrize(
    "step",
    [
        answer(f"```json\n{json.dumps(TEN)}\n```"),
        answer_json({"queries": TEN}),
        answer("\n".join(f"{number}. {query}" for number, query in enumerate(TEN, 1))),
    ],
    ids=["fence", "object", "numbered lines"],
)
async def test_ten_queries_in_another_form_are_read(
    model_server: ModelServer, step: Step
) -> None:
    assert (await generate(model_server, step)).texts == tuple(TEN)
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (answer_json(NINE), "at least 10 items"),
        (answer_json([*TEN, "wine cellar Bilbao"]), "at most 10 items"),
        (answer_json([*NINE, " "]), "query 10 is empty"),
        (answer_json([*NINE, TEN[0]]), "1 pairs of queries are duplicates"),
        (answer_json([*NINE, "https://bilbao.example"]), "query 10 is no search query"),
        (answer("I'd love to help with that."), "holds no JSON"),
    ],
)
async def test_an_invalid_answer_is_asked_for_again_once(
    model_server: ModelServer, step: Step, problem: str
) -> None:
    found = await generate(model_server, step, answer_json(TEN))
    assert found.texts == tuple(TEN)
    assert problem in feedback_of(model_server)
    assert "Return ONLY a JSON array of exactly 10 distinct" in feedback_of(
        model_server
    )
    assert len(model_server.requests) == 2


async def test_queries_that_only_resemble_each_other_count_and_get_the_place(
    model_server: ModelServer,
) -> None:
    said = [*NINE[:8], "wine bar with a terrace", "natural wine bar with a terrace"]
    found = await generate(model_server, answer_json(said))
    assert found.texts[8:] == (
        "wine bar with a terrace Bilbao",
        "natural wine bar with a terrace Bilbao",
    )
    assert len(model_server.requests) == 1


async def test_an_invalid_repair_is_an_error_and_nothing_is_padded(
    model_server: ModelServer,
) -> None:
    with pytest.raises(
        QueryGenerationFailed, match="no 10 distinct search queries for WINE"
    ):
        await generate(model_server, *[answer_json(NINE)] * 2)
    assert len(model_server.requests) == 2


async def test_a_model_that_is_down_leaves_it_to_rules(
    model_server: ModelServer,
) -> None:
    found = await generate(model_server, error(503))
    assert found.texts == build_rule_based_queries("WINE_BAR", "Bilbao").texts
    assert (found.outcome, found.error_types) == ("fallback", ("model_error",))


ARDO = Place(
    "Ardo Bár | Bilbao", "https://www.ardo.example/visit", "Txakoli since 1950."
)
ARDO_AGAIN = Place("ardo bar - Bilbao", "https://ardo.example/menu", "The menu.")
YELP_ONE = Place("Bar Uno", "https://yelp.example/uno/?utm_source=a")
YELP_AGAIN = Place("Another name", "http://m.yelp.example/uno#menu")
YELP_TWO = Place("Bar Dos", "https://yelp.example/dos")


async def test_places_are_merged_by_address_and_by_site_and_name() -> None:
    hits = {
        "wine bar Leeds": [YELP_ONE, ARDO],
        "champagne lounge Leeds": [ARDO_AGAIN, YELP_TWO],
        "sherry and port bar Leeds": [ARDO, YELP_AGAIN],
    }
    search = place_search(hits)
    found = await find_places("WINE_BAR", "Leeds", run=Run(), search=search)
    assert [place.url for place in found.results] == [
        ARDO.url,
        YELP_ONE.url,
        YELP_TWO.url,
    ]
    best = found.results[0]
    assert (best.title, best.snippet) == (ARDO.title, ARDO.snippet)
    assert best.queries == (*hits,)


async def test_a_provider_that_hangs_does_not_hold_up_the_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find, "SEARCH_SECONDS", 0.05)
    search = place_search({"wine bar Leeds": [ARDO]}, None)
    found = await find_places("WINE_BAR", "Leeds", run=Run(), search=search)
    assert (len(found.results), len(found.links)) == (1, 10)


async def test_as_a_tool_a_good_models_ten_queries_are_searched_with_the_guests_wish(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(TEN))
    tool = find_places_tool(place_search({}, [ARDO]))
    asked = {"category": "WINE_BAR", "place": "Bilbao, Spain", "wish": "natural"}
    async with open_model(model_server) as model:
        call = ToolCall("call_1", tool.name, json.dumps(asked))
        found = await Toolbox([tool]).call(call, Run([model]))
    (place,) = json.loads(found.text)["places"]
    assert place["queries"] == TEN
    assert sent(model_server)["messages"][1]["content"].endswith('Wish: "natural".')


NO_PAGES = (
    "javascript:alert(1)",
    "ftp://files.example/",
    "data:text/html,x",
    "https://evil.example\u202egnp.exe/",
    "https://two.example/a\nb",
    f"https://endless.example/{'p' * 5000}",
)


def answering(
    response: httpx2.Response,
) -> tuple[httpx2.AsyncClient, list[httpx2.Request]]:
    """Return a client for which every server has one response, and the requests that it sends."""
    seen = list[httpx2.Request]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return response

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer)), seen


async def test_no_places_are_looked_up_for_a_guest_who_must_not_drink() -> None:
    minor = Person(SafetyState().with_stored_names(["under_age"]))
    call = ToolCall("1", "find_places", '{"category": "WINE_BAR", "place": "Leeds"}')
    toolbox = Toolbox([find_places_tool(place_search({}, [ARDO]))])
    result = await toolbox.call(call, Run(deps=Deps(person=minor)))
    assert "no places are looked up" in result.text
    assert result.sources == {}


async def test_of_searxng_only_what_can_be_shown_is_taken_over() -> None:
    results: list[Any] = [
        *({"title": "Trap", "url": url} for url in NO_PAGES),
        {"title": "no address", "url": None},
        {"url": "https://no-title.example"},
        *("no result", None),
        {
            "title": "half \ud83d",
            "url": "https://half.example/?a=1&copy=2",
            "content": "Hi",
        },
        {"title": "Nice \u202e moc.doog\nbar", "url": "https://turned.example"},
        {"title": "L" * 5000, "url": "https://long.example", "content": "C" * 5000},
    ]
    body = json.dumps(
        {"results": results, "answers": ["42"], "infoboxes": [{"urls": []}]}
    )
    http, seen = answering(httpx2.Response(200, text=body))
    half, turned, long = await searxng("http://searx.example/sx/", http).search(
        "wine bar"
    )
    assert half == Place("half", "https://half.example/?a=1&copy=2", "Hi")
    assert turned.title == "Nice moc.doog bar"
    assert (len(long.title), len(long.snippet)) == (200, 1000)
    assert seen[0].url.path == "/sx/search"
    asked = {"q": "wine bar", "format": "json", "categories": "general,map"}
    assert dict(seen[0].url.params) == asked


async def test_results_of_brave_are_read_as_places() -> None:
    result = {
        "title": "Ardo &amp; Co",
        "url": "https://ardo.example",
        "description": "A <strong>wine</strong> bar",
    }
    http, seen = answering(httpx2.Response(200, json={"web": {"results": [result]}}))
    found = await brave(SecretStr("key-1"), http).search("wine bar")
    assert found == [Place("Ardo & Co", "https://ardo.example", "A wine bar")]
    assert seen[0].url.host == "api.search.brave.com"
    assert seen[0].headers["x-subscription-token"] == "key-1"


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (httpx2.Response(403), "answered 403: check its address, its key"),
        (httpx2.Response(200, text="[" * 100_000), "not its JSON"),
        (httpx2.Response(200, text="[1]"), "not its JSON"),
    ],
)
async def test_a_failure_says_what_to_do(
    response: httpx2.Response, problem: str
) -> None:
    http, _ = answering(response)
    with pytest.raises(ToolError, match=problem):
        await searxng("http://searx.example", http).search("wine bar")
