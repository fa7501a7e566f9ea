"""What is cut from an answer: seen in the trace, or asked for again."""

from typing import Any

import pytest

from agent.cellar.items import guess_wine, to_cellar_item
from agent.turn import Person
from bot.reports import trace_text
from tests.doubles.model_server import ModelServer, answer_json
from tests.fakes import CHINON, RIOJA
from tests.faults.turns import QUESTION, VALID, reply_to, search, valid

LIE = "Parker gave it 97 points."
FINE = "Its fine tannin suits the meat, and a light chill of an hour brings out the raspberry."


def described(text: str, **fields: Any) -> dict[str, Any]:
    return VALID | {"wines": [{"wine_id": CHINON.id, "description": text}]} | fields


async def test_a_cut_is_a_grounding_error_that_traces_show(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(described(FINE, closing=LIE)))
    reply, trace = await reply_to(QUESTION, server=model_server)
    assert FINE in reply.text
    assert LIE not in reply.text
    assert (reply.outcome, reply.retries, reply.error_types) == (
        "answered",
        0,
        ("grounding",),
    )
    assert trace.root.metadata["error_types"] == ["grounding"]
    (guard,) = [span for span in trace.spans if span.name == "guard.output"]
    assert (guard.output, guard.level) == ({"cut": [LIE]}, "WARNING")
    assert f'out {{"cut": ["{LIE}"]}}' in trace_text(trace)


@pytest.mark.parametrize(
    "broken",
    [
        described(f"{LIE} {FINE}"),
        described(f"{FINE} {LIE} It is the more complex of the two."),
        described(f"Fresh and fine. {LIE} Lovely with lamb.", intro=""),
        VALID
        | {"wines": [*VALID["wines"], {"wine_id": "nowhere", "description": "Grand."}]},
    ],
    ids=[
        "the first sentence",
        "a pronoun without its noun",
        "more than a third",
        "a wine",
    ],
)
async def test_an_answer_that_reads_badly_without_the_cut_is_asked_for_again(
    broken: dict[str, Any], model_server: ModelServer
) -> None:
    model_server.script(answer_json(broken), valid())
    reply, _ = await reply_to(QUESTION, server=model_server)
    assert (reply.outcome, reply.retries, reply.error_types) == (
        "answered",
        1,
        ("grounding",),
    )
    assert VALID["wines"][0]["description"] in reply.text


async def test_when_all_attempts_fail_what_the_salvaged_answer_lost_is_in_the_trace(
    model_server: ModelServer,
) -> None:
    both = [*VALID["wines"], {"wine_id": RIOJA.id, "description": LIE}]
    model_server.script(*[answer_json(VALID | {"wines": both})] * 3)
    reply, trace = await reply_to(QUESTION, server=model_server)
    assert (reply.outcome, reply.error_types) == ("salvaged", ("grounding",) * 3)
    *attempts, shown = [span for span in trace.spans if span.name == "guard.output"]
    assert len(attempts) == 3
    assert all("97 points" in str(attempt.output) for attempt in attempts)
    assert shown.output == {"cut": [LIE]}


@pytest.mark.parametrize(
    ("closing", "is_shown"),
    [
        ("The Château Lestruelle 2016 is grander still.", False),
        ("The Weingut Vacheron Sancerre 2022 is for the fish.", True),
        ("Your Château Musar 2015 can wait.", True),
    ],
    ids=["invented", "in the catalogue", "in the guest's cellar"],
)
async def test_a_name_that_nothing_knows_is_cut(
    closing: str, is_shown: bool, model_server: ModelServer
) -> None:
    bottle = to_cellar_item(guess_wine("Château Musar 2015"), 2)
    guest = Person(user_id=7, bottles=(bottle,))
    model_server.script(search(), answer_json(described(FINE, closing=closing)))
    reply, _ = await reply_to(
        "a red for lamb, 2015 or 2022", server=model_server, person=guest
    )
    assert (closing in reply.text) is is_shown
    assert reply.error_types == (() if is_shown else ("grounding",))
