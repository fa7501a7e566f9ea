"""What a guest hears of a wine that they name, point at, or want by the glass, without a model."""

from typing import Any

import pytest

from agent.fallback.answering import Fallback
from agent.i18n import use_language
from agent.query_reading.phrases import detect_language
from agent.safety.state import SafetyState
from agent.sommelier.offers import Offer
from agent.sommelier.wine import Wine
from agent.turn import NOBODY, Person, Reply, StoredMessage
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import import_wines
from db.wines.lists.importing import CatalogueFile


def wine(
    wine_id: str, producer: str, name: str, style: str, *offers: Offer, **facts: Any
) -> Wine:
    told = {
        "country": "",
        "vintage": 2019,
        "offers": offers or (Offer(price=20),),
        **facts,
    }
    return Wine.model_validate(
        {"id": wine_id, "producer": producer, "name": name, "style": style, **told}
    )


GLASS = Offer.model_validate({"kind": "glass", "size_ml": 100, "price": 8.5})
WINES = (
    wine(
        "chablis",
        "Vocoret",
        "Chablis",
        "white",
        Offer(price=32),
        GLASS,
        region="Chablis",
    ),
    wine("sancerre", "Mellot", "Sancerre", "white", region="Sancerre"),
    wine("rose", "Tempier", "Bandol", "rose", region="Bandol"),
    wine("mouton", "Mouton Rothschild", "Pauillac", "red", Offer(price=600)),
    wine("palmer", "Château Palmer", "Margaux", "red", region="Margaux"),
    wine("vinsanto", "San Felice", "Belcaro Vin Santo", "sweet"),
    wine("tignanello", "Antinori", "Tignanello", "red", allergens=["egg"]),
)


@pytest.fixture
async def fallback(sessions: Sessions) -> Fallback:
    await import_wines(sessions, CatalogueFile(WINES))
    return Fallback(catalogue=SqlCatalogue(sessions))


async def say(fallback: Fallback, *texts: str, person: Person = NOBODY) -> Reply:
    """Send messages one after the other; return the reply to the last."""
    messages: list[StoredMessage] = []
    reply = Reply(text="")
    for text in texts:
        messages.append(StoredMessage("user", text))
        with use_language(detect_language(text, "en")):
            reply = (await fallback.answer(messages, person=person)).reply
        messages.append(StoredMessage("assistant", reply.text, reply.wine_ids))
    return reply


@pytest.mark.parametrize(
    ("text", "start", "ids"),
    [
        (
            "Tignanello 2018?",
            "We don't have “Tignanello 2018”, but we have this wine in another",
            "tignanello",
        ),
        ("do you have tignanello at the moment please", "Yes, in stock", "tignanello"),
        ("do you have mouton rothschild?", "Yes, in stock", "mouton"),
        ("Miraval?", "I can't find “Miraval”", ""),
        ("got cheval blanc?", "I can't find “cheval blanc”", ""),
        ("avez vous du cheval blanc", "Je ne trouve pas", ""),
        ("do you have chateau margaux", "I can't find", "palmer"),
        ("haben sie vin santo", "Ja, haben wir", "vinsanto"),
        (
            "do you have Chablis as a magnum?",
            "In stock, but not as you asked for it",
            "chablis",
        ),
        ("Was kostet der Chablis im Glas?", "*Chablis", "chablis"),
        ("What is the Chablis by the glass?", "*Chablis", "chablis"),
    ],
)
async def test_a_wine_that_is_named_is_told_as_it_is(
    fallback: Fallback, text: str, start: str, ids: str
) -> None:
    reply = await say(fallback, text)
    assert reply.text.startswith(start), reply.text
    assert reply.wine_ids == tuple(ids.split())
    assert ("8.50" in reply.text or "8,50" in reply.text) == (ids == "chablis")


async def test_a_wine_that_an_allergy_leaves_out_is_not_denied(
    fallback: Fallback,
) -> None:
    allergic = Person(SafetyState(allergies=frozenset({"egg"})))
    reply = await say(fallback, "do you have Tignanello?", person=allergic)
    assert (
        reply.text.startswith("We have “Tignanello”, but I've left it out"),
        reply.wine_ids,
    ) == (
        True,
        (),
    )


async def test_an_offer_is_relaxed_with_a_word_and_forgotten_with_another_kind_of_wine(
    fallback: Fallback,
) -> None:
    by_the_glass = await say(fallback, "a rosé by the glass")
    assert (by_the_glass.wine_ids, "What's missing: glass" in by_the_glass.text) == (
        ("rose",),
        True,
    )
    red = await say(fallback, "a white by the glass", "and a red?")
    assert ("glass" in red.text.split("\n")[0], len(red.wine_ids)) == (False, 3)


@pytest.mark.parametrize(
    ("asked", "position"),
    [
        ("show me the second", 1),
        ("zeig mir den letzten", -1),
        ("une photo du premier", 0),
    ],
)
async def test_one_of_the_wines_that_were_shown_is_shown_alone(
    fallback: Fallback, asked: str, position: int
) -> None:
    shown = (await say(fallback, "a white wine")).wine_ids
    assert (await say(fallback, "a white wine", asked)).wine_ids == (shown[position],)
    again = await say(fallback, "a white wine", asked, "show me the second")
    assert again.wine_ids == (shown[1],)
    named = await say(fallback, "a white wine", "show me the Sancerre")
    assert named.wine_ids == ("sancerre",)
