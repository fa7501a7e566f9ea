"""Conversations with the fallback about the starter wines and documents, in every language."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.fallback.answering import Fallback
from agent.fallback.follow_ups import BUTTONS, FollowUp
from agent.fallback.merging import MAX_EARLIER_MESSAGES
from agent.formatting import format_money
from agent.i18n import languages, translate, translate_into, use_language
from agent.memory.changes import add_change_notes
from agent.query_reading.aromas import find_aromas
from agent.query_reading.language_words import load_language_words
from agent.query_reading.names import get_grape_name
from agent.query_reading.phrases import detect_language
from agent.query_reading.prices import MODERATE_PRICE
from agent.safety.state import Concern, SafetyState
from agent.sommelier.cards import translate_country
from agent.sommelier.serving import drinking_years
from agent.sommelier.vocabulary import Allergen, Body, Colour, Food, Style
from agent.sommelier.wine import Wine
from agent.turn import NOBODY, Fact, Person, Reply, StoredMessage
from db.documents.store import SqlDocumentStore
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue
from tests.databases import migrated_sqlite


class Conversation:
    """A conversation with the fallback and its history."""

    def __init__(self, fallback: Fallback, person: Person = NOBODY) -> None:
        self.fallback, self.person = fallback, person
        self.messages: list[StoredMessage] = []
        self.language = "en"

    async def say(self, *texts: str) -> Reply:
        """Send messages one after the other; return the reply to the last."""
        reply = Reply(text="")
        for text in texts:
            self.messages.append(StoredMessage("user", text))
            self.language = detect_language(text, self.language)
            with use_language(self.language):
                answer = await self.fallback.answer(self.messages, person=self.person)
            reply = answer.reply
            self.messages.append(StoredMessage("assistant", reply.text, reply.wine_ids))
        return reply


@pytest.fixture
async def fallback(environment: dict[str, str]) -> AsyncIterator[Fallback]:
    engine = await migrated_sqlite(
        Path(environment["XDG_DATA_HOME"]) / "sommelier" / "sommelier.sqlite3"
    )
    sessions = Sessions(engine)
    documents = SqlDocumentStore(sessions)
    yield Fallback(catalogue=SqlCatalogue(sessions), documents=documents)
    await engine.dispose()


def wines_of(reply: Reply) -> list[Wine]:
    return [wine for wine in reply.wines if isinstance(wine, Wine)]


def country_in(language: str, country: str) -> str:
    with use_language(language):
        return translate_country(country)


REQUESTS = {code: words.example for code, words in load_language_words().items()}


@pytest.mark.parametrize("language", REQUESTS)
async def test_a_conversation_in_every_language(
    language: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say(REQUESTS[language])
    interpretation = first.text.split("\n\n")[0]
    assert interpretation.startswith("*")
    with use_language(language):
        limit = translate("fallback_below", price=format_money(20, "EUR"))
    assert limit in interpretation
    merlot = get_grape_name("Merlot", language)
    assert translate_into(language, "fallback_without", name=merlot) in interpretation
    assert translate_into(language, "pairing_lamb") in first.text
    assert 0 < len(first.wines) <= 3
    for wine in wines_of(first):
        assert (wine.style, "Merlot" in wine.grapes) == (Style.RED, False)
        assert wine.price is not None
        assert wine.price < 20
        assert country_in(language, wine.country) in first.text
    cheapest = min(wine.price or 0 for wine in wines_of(first))
    cheaper = await conversation.say(translate_into(language, "wish_cheaper"))
    assert cheaper.wines
    assert all((wine.price or 0) < cheapest for wine in wines_of(cheaper))


@pytest.mark.parametrize("language", languages())
async def test_every_follow_up_button_is_understood(
    language: str, fallback: Fallback
) -> None:
    for follow_up in BUTTONS:
        conversation = Conversation(fallback)
        first = await conversation.say(REQUESTS[language])
        words = translate_into(language, f"wish_{follow_up}")
        reply = await conversation.say(words)
        assert reply.wine_ids, words
        if follow_up is FollowUp.WHY:
            assert reply.wine_ids == first.wine_ids
        else:
            assert not set(reply.wine_ids) & set(first.wine_ids)


@pytest.mark.parametrize(
    ("language", "question", "aromas"),
    [
        ("de", "Habt ihr den Malbec von Catena Zapata?", "Veilchen, Pflaume, Mokka"),
        ("fr", "Avez-vous le malbec de Catena Zapata ?", "violette, prune, moka"),
    ],
)
async def test_a_card_tells_in_the_users_language_what_the_wine_tastes_of(
    language: str, question: str, aromas: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(question)
    assert translate_into(language, "notes_aromas", aromas=aromas) in reply.text
    assert not any(wine.notes in reply.text for wine in wines_of(reply))


@pytest.mark.parametrize(
    ("language", "wish", "aroma"),
    [
        ("en", "a red for lamb with black cherry aromas", "black cherry"),
        ("de", "Rotwein zum Lamm mit Noten von Schwarzkirsche", "Schwarzkirsche"),
    ],
)
async def test_wines_with_the_aroma_that_a_wish_names_come_first(
    language: str, wish: str, aroma: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(wish)
    cards = reply.text.split("**1.")[1]
    assert aroma in reply.text.split("**1.")[0]
    assert cards.lower().count(aroma.lower()) >= 2
    first_wine = wines_of(reply)[0]
    assert "black_cherry" in find_aromas(first_wine.notes, "en")


async def test_why_is_answered_with_what_each_wine_has_of_the_wish(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say("a red for lamb up to 25 euros")
    why = await conversation.say(translate_into("en", "wish_why"))
    assert translate_into("en", "pairing_lamb") in why.text
    for wine in wines_of(first):
        assert wine.label in why.text
        assert wine.notes not in why.text  # no card is repeated
    assert why.text.count("Goes with lamb") == len(first.wines)


async def test_why_names_no_tannin_of_a_white_and_what_a_wine_does_not_meet(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    wish = "a dry white for salmon under 20 euros, no Chardonnay"
    white = await conversation.say(wish, "why?")
    assert "tannins" not in white.text
    assert "Goes with oily fish" in white.text
    assert "Style: fresh acidity" in white.text
    sweet = await conversation.say("a sweet red from Austria under 5 euros", "why?")
    assert "But you asked for: sweet" in sweet.text


async def test_a_wine_described_anew_is_a_new_wish(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    await conversation.say("a sweet red from Austria under 20 euros")
    white = await conversation.say("a white without sulphites")
    assert white.text.startswith("*White wine · no added sulphites*")
    assert translate("fallback_start_over") not in white.text
    dear = await conversation.say("a vegan red under 5 euros from Spain", "from Japan")
    assert dear.text.startswith("*Red wine · Japan · under €5 · vegan")
    assert translate("fallback_start_over") in dear.text


async def test_one_bottle_suits_meat_and_fish_or_is_said_to_be_for_one_dish(
    fallback: Fallback,
) -> None:
    both = await Conversation(fallback).say("steak and salmon")
    assert translate("pairing_bridge") in both.text
    for wine in wines_of(both):
        assert wine.style in (Style.RED, Style.ROSE)
        assert wine.body in (Body.LIGHT, Body.MEDIUM_LIGHT)
    steak = await Conversation(fallback).say("steak and chocolate cake")
    assert translate("fallback_first_dish", dish="steak") in steak.text


async def test_what_no_wine_is_known_to_lack_is_said_once(fallback: Fallback) -> None:
    reply = await Conversation(fallback).say(
        "a vegan full-bodied red from Spain for salmon, 10 to 15 euros"
    )
    assert "These wines aren't a good match for the dish." in reply.text
    assert reply.text.count("vegan") == 2  # in the wish, and below the cards
    assert translate("fallback_vegan_unknown") in reply.text


@pytest.mark.parametrize(
    "text",
    [
        "a full-bodied red for salmon",
        "the cheapest full-bodied red",
        "a vegan full-bodied red from Spain, 10 to 15 euros",
        "a full-bodied white for oysters",
    ],
)
async def test_a_body_that_is_asked_for_is_that_of_every_wine(
    text: str, fallback: Fallback
) -> None:
    wines = wines_of(await Conversation(fallback).say(text))
    assert len(wines) == 3
    assert {wine.body for wine in wines} <= {Body.MEDIUM_FULL, Body.FULL}


async def test_a_card_says_that_its_wine_has_another_body(fallback: Fallback) -> None:
    reply = await Conversation(fallback).say("a full-bodied white under 15 euros")
    is_full = [wine.body in (Body.MEDIUM_FULL, Body.FULL) for wine in wines_of(reply)]
    assert is_full == [True, False, False]
    assert reply.text.count("But you asked for: full-bodied") == 2


RUDE = {
    "en": "this is crap, you stupid robot, cheaper!",
    "de": "Was für ein Mist, du dämlicher Blechkasten, etwas günstiger!",
    "fr": "c'est nul, espèce de robot débile, moins cher !",
    "es": "qué porquería, robot estúpido, ¡más barato!",
    "it": "che schifo, stupido robot inutile, meno caro!",
    "nl": "wat een troep, stomme robot, goedkoper!",
    "pt": "és mesmo burro, seu palhaço inútil, mais em conta!",
}


@pytest.mark.parametrize("language", RUDE)
async def test_a_rude_message_with_a_clear_clause_is_a_follow_up(
    language: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say(REQUESTS[language])
    cheaper = await conversation.say(RUDE[language])
    cheapest = min(wine.price or 0 for wine in wines_of(first))
    assert cheaper.wines
    for wine in wines_of(cheaper):
        assert wine.style == Style.RED
        assert (wine.price or 0) < cheapest


async def test_who_wants_it_cheaper_before_any_wine_is_told_so(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say(RUDE["en"])
    none_shown = translate_into("en", "fallback_none_shown")
    assert reply.text.startswith(none_shown)


async def test_a_cheaper_wine_than_none_that_was_shown_has_a_moderate_price(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("Günstiger Rotwein")
    assert reply.wines
    for wine in wines_of(reply):
        assert wine.style == Style.RED
        assert (wine.price or 0) <= MODERATE_PRICE


NO_WISHES = {
    "en": ("Good Evening", "you are useless", "asdf qwer zxcv"),
    "de": ("Guten Abend", "Du bist echt dumm", "der zweite"),
    "fr": ("Bonne Nuit", "tu es nul", "moins cher"),
    "es": ("buenas tardes", "eres tonto", "cuéntame más del primero"),
    "it": ("Buona Serata", "sei inutile", "bla bla gnè gnè 99"),
    "nl": ("Goede Avond", "wat een onzin", "en de tweede?"),
    "pt": ("Boa Tarde", "que disparate", "mais caro"),
}
THANKS = {
    "en": "thank you, that was lovely",
    "de": "Danke schön",
    "fr": "merci beaucoup",
    "es": "gracias",
    "it": "grazie mille",
    "nl": "dank je wel",
    "pt": "obrigado",
}


@pytest.mark.parametrize("language", NO_WISHES)
async def test_a_message_without_a_wish_is_told_what_can_be_asked(
    language: str, fallback: Fallback
) -> None:
    for text in NO_WISHES[language]:
        with use_language(language):
            answer = await fallback.answer([StoredMessage("user", text)])
        assert answer.reply.text.endswith(translate_into(language, "fallback_help")), (
            text
        )


@pytest.mark.parametrize("language", THANKS)
async def test_thanks_are_answered_in_kind(language: str, fallback: Fallback) -> None:
    with use_language(language):
        answer = await fallback.answer([StoredMessage("user", THANKS[language])])
    assert answer.reply.text == translate_into(language, "fallback_thanks")


async def test_a_label_of_a_button_that_is_typed_is_that_button(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say(REQUESTS["en"])
    cheaper = await conversation.say("cheaper!")
    assert cheaper.wines
    cheapest = min(wine.price or 0 for wine in wines_of(first))
    assert all((wine.price or 0) < cheapest for wine in wines_of(cheaper))


CHEAPER = {
    "en": ("and something cheaper?", "cheaper, and from Italy", "that's too expensive"),
    "de": ("und was Günstigeres?", "billiger und aus Italien", "das ist mir zu teuer"),
    "fr": ("plutôt moins cher", "moins cher, et d'Italie", "c'est trop cher"),
    "es": ("¿algo más económico?", "más barato y de Italia", "es demasiado caro"),
    "it": ("qualcosa di meno caro", "meno caro, ma italiano", "troppo caro"),
    "nl": ("iets goedkopers", "goedkoper en uit Italië", "dat is me te duur"),
    "pt": ("algo mais em conta?", "mais barato e de Itália", "é muito caro"),
}


@pytest.mark.parametrize("language", CHEAPER)
async def test_a_cheaper_wine_is_asked_for_in_ordinary_words(
    language: str, fallback: Fallback
) -> None:
    for text in CHEAPER[language]:
        conversation = Conversation(fallback)
        first = await conversation.say(REQUESTS[language])
        cheaper = await conversation.say(text)
        cheapest = min(wine.price or 0 for wine in wines_of(first))
        assert cheaper.wines, text
        for wine in wines_of(cheaper):
            assert wine.style == Style.RED, text
            assert (wine.price or 0) < cheapest, text
        assert conversation.language == language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "nice. have you got something cheaper than the second one?"),
        ("de", "habt ihr was, das billiger als der zweite ist?"),
        ("fr", "vous auriez moins cher que le deuxième ?"),
        ("es", "más barato que el segundo"),
        ("it", "qualcosa di meno caro del secondo?"),
        ("nl", "iets goedkoper dan de tweede graag"),
        ("pt", "algo mais barato do que o segundo?"),
    ],
)
async def test_cheaper_than_the_second_compares_with_the_second(
    language: str, text: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    first = wines_of(await conversation.say(REQUESTS[language]))
    cheaper = wines_of(await conversation.say(text))
    assert cheaper
    assert not set(first).intersection(cheaper)
    for wine in cheaper:
        assert (wine.price or 0) < (first[1].price or 0)


@pytest.mark.parametrize(
    ("language", "text", "answer"),
    [
        (
            "en",
            "How long can I keep Chianti Classico?",
            "Chianti Classico: serve it at",
        ),
        ("de", "Wie lange hält sich ein Barolo?", "meist am besten 7 bis 25"),
        ("de", "Wie warm trinkt man Spätburgunder?", "Trinktemperatur 12 bis 14"),
        ("fr", "À quelle température servir un Barolo ?", "entre 16 et 18 °C"),
        ("es", "¿Cuánto tiempo guardo un Rioja Reserva?", "Rioja Reserva: se sirve"),
        ("es", "tengo un ribera 2015, lo abro ya?", "Ribera del Duero: se sirve"),
        ("it", "A che temperatura si serve il Soave?", "Soave: si serve"),
        ("nl", "Op welke temperatuur drink je Beaujolais?", "12 tot 14 °C"),
        ("pt", "Quanto tempo posso guardar um Dão?", "entre 2 e 11 anos"),
        (
            "en",
            "How long does a white Burgundy keep?",
            "Burgundy (white wine): serve it",
        ),
    ],
)
async def test_how_to_serve_a_wine_and_how_long_it_keeps(
    language: str, text: str, answer: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    conversation.language = language
    reply = await conversation.say(text)
    assert answer in reply.text
    assert not reply.wines


async def test_how_to_serve_the_wines_shown_and_when(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    shown = wines_of(await conversation.say("a red for lamb"))
    second = await conversation.say("and how long can I keep the second one?")
    assert second.text.startswith(f"**{shown[1].label}**: serve it at")
    years = drinking_years(shown[1])
    assert years is not None
    assert str(years[1]) in second.text
    all_wines = await conversation.say("how do I serve them?")
    assert all(wine.label in all_wines.text for wine in shown)
    champagne = await conversation.say("how cold should champagne be?")
    assert champagne.text == "Champagne: serve it at 8 to 11 °C."


async def test_a_question_about_an_empty_cellar_says_so(fallback: Fallback) -> None:
    for text in ("how many bottles do I have?", "which of my wines are ready?"):
        reply = await Conversation(fallback).say(text)
        assert reply.text.startswith("There is nothing in your cellar yet.")
        assert not reply.wines
    reply = await Conversation(fallback).say("do I have any Riesling?")
    assert reply.wines


async def test_what_asks_for_knowledge_without_a_question_word(
    fallback: Fallback,
) -> None:
    for text in ("tell me about Barolo", "mein Wein riecht nach nasser Pappe"):
        conversation = Conversation(fallback)
        await conversation.say("a gift up to 40 euros")
        reply = await conversation.say(text)
        assert not reply.wines
        assert "[1]" in reply.text


async def test_a_question_about_one_of_the_wines_shown(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    shown = wines_of(await conversation.say("a red for lamb"))
    vegan = await conversation.say("is the second one vegan?")
    assert [wine.label for wine in wines_of(vegan)] == [shown[1].label]
    assert "not known whether it is vegan" in vegan.text
    why = await conversation.say("why the second?")
    assert "As you asked: red wine" in why.text
    assert shown[0].label not in why.text


async def test_who_asks_for_organic_wine_is_told_what_is_known(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("a cheap organic white")
    organic = [wine for wine in wines_of(reply) if "organic" in wine.notes.lower()]
    names = ", ".join(wine.label for wine in organic)
    assert 0 < len(organic) < len(reply.wines)
    assert reply.text.endswith(f"Known to be organic: {names}.")


async def test_who_does_not_drink_is_shown_wines_without_alcohol(
    fallback: Fallback,
) -> None:
    for text in ("I don't drink", "Meine Frau trinkt nicht, was gibt es für sie?"):
        wines = wines_of(await Conversation(fallback).say(text))
        assert {wine.style for wine in wines} == {Style.ALCOHOL_FREE}
    others = wines_of(await Conversation(fallback).say("I don't drink red wine"))
    assert others
    assert {Style.RED, Style.ALCOHOL_FREE}.isdisjoint(wine.style for wine in others)


async def test_an_open_bottle_is_a_question_for_documents(fallback: Fallback) -> None:
    text = "How long does an open bottle of Chianti keep?"
    reply = await Conversation(fallback).say(text)
    assert "An open bottle keeps in the refrigerator" in reply.text


async def test_what_only_some_of_the_wines_have_is_named(fallback: Fallback) -> None:
    reply = await Conversation(fallback).say("a sweet Furmint from Chile")
    some = [wine for wine in wines_of(reply) if "Furmint" in wine.grapes]
    assert 0 < len(some) < len(reply.wines)
    assert "What's missing: Chile." in reply.text
    assert reply.text.count("But you asked for: Furmint") == len(reply.wines) - len(
        some
    )


async def test_a_wish_ends_with_a_long_pause(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    first = wines_of(await conversation.say("a red for lamb up to 25 euros"))
    now = datetime.now(UTC)
    yesterday = now - timedelta(days=1)
    earlier = [
        replace(message, created_at=yesterday) for message in conversation.messages
    ]

    async def answer_today(text: str) -> Reply:
        message = StoredMessage("user", text, created_at=now)
        with use_language("en"):
            answer = await fallback.answer([*earlier, message])
        return answer.reply

    salmon = await answer_today("something for salmon")
    assert salmon.text.startswith("*Salmon*")
    cheaper = await answer_today("Cheaper")
    assert cheaper.text.startswith("*Red wine · lamb ·")
    least = min(wine.price or 0 for wine in first)
    assert all((wine.price or 0) < least for wine in wines_of(cheaper))


async def test_words_compare_with_the_wines_shown(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    first = wines_of(await conversation.say("a red for lamb up to 25 euros"))
    better = wines_of(await conversation.say("something better, it's a birthday"))
    dearest = max(wine.price or 0 for wine in first)
    assert better
    assert all((wine.price or 0) > dearest for wine in better)
    top = Conversation(fallback)
    dearest_red = await top.say("the most expensive red")
    assert (await top.say("something better")).wine_ids == ()
    assert dearest_red.wine_ids
    cheaper = await conversation.say("like the first but cheaper, from Italy")
    assert cheaper.wines
    for wine in wines_of(cheaper):
        assert (wine.price or 0) < (better[0].price or 0)
        assert wine.country == "Italy"
    similar = await conversation.say("something like the second")
    assert f"These are the closest to the {wines_of(cheaper)[1].label}" in similar.text
    lighter = wines_of(await conversation.say("these are too heavy"))
    assert lighter
    assert all(wine.body not in (Body.MEDIUM_FULL, Body.FULL) for wine in lighter)


async def test_where_nothing_is_cheaper_the_wish_stays_as_it_was(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say("a Barolo, the cheapest")
    while True:
        reply = await conversation.say("and cheaper?")
        if not reply.wines:
            break
    assert first.wines
    assert "Nothing cheaper fits" in reply.text
    white = await conversation.say("and in white?")
    assert white.wines


GIFTS = {
    "en": ("a present for my boss, up to 40 euros", "Gift"),
    "de": ("ein Geschenk für meinen Chef, bis 40 Euro", "Geschenk"),
    "fr": ("un cadeau pour mon patron, 40 euros maximum", "Cadeau"),
    "es": ("un regalo para mi suegra, hasta 40 euros", "Regalo"),
    "it": ("un regalo per il mio capo, fino a 40 euro", "Regalo"),
    "nl": ("een cadeau voor mijn baas, tot 40 euro", "Cadeau"),
    "pt": ("um presente para o meu chefe, até 40 euros", "Presente"),
}


@pytest.mark.parametrize("language", GIFTS)
async def test_a_gift_is_called_one_and_is_not_cheap(
    language: str, fallback: Fallback
) -> None:
    text, heading = GIFTS[language]
    conversation = Conversation(fallback)
    await conversation.say(REQUESTS[language])
    gift = await conversation.say(text)
    assert gift.text.startswith(f"*{heading} · ")
    red = await conversation.say(translate_into(language, "wish_cheaper"))
    for wine in [*wines_of(gift), *wines_of(red)]:
        assert 15 < (wine.price or 0) <= 40


async def test_the_first_dish_completes_a_wish_and_another_begins_one(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    await conversation.say("a crisp white under 20 euros")
    spanish = await conversation.say("do you have any from Spain?")
    oysters = await conversation.say("it's for oysters")
    assert oysters.text.startswith(
        "*White wine · fresh acidity · crisp · Spain · oysters"
    )
    for wine in [*wines_of(spanish), *wines_of(oysters)]:
        assert (wine.country, wine.style) == ("Spain", Style.WHITE)
    lamb = await conversation.say("and for lamb?")
    assert lamb.text.startswith("*Lamb*")


@pytest.mark.parametrize(
    ("before", "text", "wish"),
    [
        ("for lamb", "a red up to 20 euros", "Red wine · lamb · up to €20"),
        (
            "for salmon",
            "a dry white up to 20 euros",
            "White wine · dry · salmon · up to €20",
        ),
        (
            "for oysters",
            "a Champagne up to 40 euros",
            "Sparkling wine · Champagne · oysters · up to €40",
        ),
        (
            "something for steak",
            "a vegan full-bodied red from Spain, 10 to 15 euros",
            "Red wine · full-bodied · Spain · €10–15 · vegan",
        ),
        (
            "up to 20 euros, no Merlot",
            "a full-bodied red from Spain",
            "Red wine · full-bodied · Spain · up to €20 · no Merlot",
        ),
    ],
)
async def test_a_message_that_says_all_it_wants_begins_a_new_wish(
    before: str, text: str, wish: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(before, text)
    assert reply.text.startswith(f"*{wish}*")


async def test_a_wine_shown_before_is_judged_for_another_dish(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    shown = wines_of(await conversation.say("a red for lamb"))
    duck = await conversation.say("the second one, would that work with duck as well?")
    assert wines_of(duck) == [shown[1]]
    assert duck.text.startswith(translate_into("en", "fallback_dish_suits_less"))
    barbecue = await conversation.say("would the second work with barbecue?")
    assert wines_of(barbecue) == [shown[1]]
    assert barbecue.text.startswith(translate_into("en", "fallback_dish_suits"))
    course = await conversation.say("oysters as the first course")
    assert course.text.startswith("*Oysters*")


async def test_a_glass_before_a_meal_is_sparkling_and_is_said_to_be_an_aperitif(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("une coupe pour l'apéro")
    assert all(wine.style == Style.SPARKLING for wine in wines_of(reply))
    assert "· à l'apéritif" in reply.text


async def test_who_asks_for_any_wine_is_shown_several_kinds(fallback: Fallback) -> None:
    answer = await fallback.answer([StoredMessage("user", "recommend something")])
    assert len({wine.style for wine in wines_of(answer.reply)}) > 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("what is tannin?", "Tannin"),
        ("que veut dire tanin ?", "What tannin is"),
        ("Cosa vuol dire DOCG sull'etichetta di un vino?", "Italy: levels of origin"),
        ("Was ist der Unterschied zwischen DOC und DOCG?", "Italy: levels of origin"),
        ("Wat is het verschil tussen port en sherry?", "port and sherry?"),
        ("how long can I keep an open bottle?", "How long does an open bottle keep?"),
        ("hoe lang blijft een open fles goed?", "How long does an open bottle keep?"),
        ("Le vin rouge doit-il être servi chaud ?", "Should red wine be served warm?"),
        ("Was bedeutet sur lie?", "Sur lie"),
        ("Wat is malolactische gisting?", "What malolactic fermentation is"),
        ("Warum schmeckt Rotwein zu Fisch metallisch?", "can taste metallic"),
        ("Posso guardar vinho no frigorífico?", "in the fridge for months"),
        ("¿Qué diferencia hay entre fino y oloroso?", "fino and oloroso"),
        ("¿Por qué el champán tiene burbujas?", "Crémant and Champagne compared"),
        ("¿Qué añadas fueron buenas en Burdeos?", "Good vintages"),
        ("Que colheitas foram boas em Bordéus?", "Good vintages"),
        ("Quais safras foram boas em Bordeaux?", "Good vintages"),
        ("What is a corked wine?", "Cork taint"),
        ("Come si conserva una bottiglia aperta?", "bottle"),
    ],
)
async def test_a_question_is_answered_by_a_quoted_passage(
    text: str, title: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(text)
    intro, *quotes, source = reply.text.split("\n\n")
    assert intro.endswith(":")
    for quote in quotes:
        assert all(line.startswith("> ") for line in quote.splitlines())
    assert source.startswith("[1] ")
    assert title in source
    assert not reply.wine_ids


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Do you deliver to Lyon?"),
        ("de", "Kann ich eine Flasche zurückgeben?"),
        ("fr", "Faites-vous des paquets cadeaux ?"),
        ("it", "Consegnate a Milano?"),
        ("es", "¿Se puede pagar con tarjeta?"),
        ("pt", "Têm cartão de cliente?"),
        ("nl", "Hoe laat gaan jullie open?"),
    ],
)
async def test_who_asks_about_the_shop_is_not_quoted_a_document_about_wine(
    language: str, text: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    conversation.language = language
    reply = await conversation.say(text)
    assert reply.text == translate_into(language, "only_shop_knows")


@pytest.mark.parametrize(
    "text",
    ["How do you make beer?", "Comment fabrique-t-on la bière ?", "Hoe maak je bier?"],
)
async def test_a_passage_that_mentions_a_word_in_passing_is_no_answer(
    text: str, fallback: Fallback
) -> None:
    assert "\n> " not in (await Conversation(fallback).say(text)).text


async def test_a_guest_who_wants_to_talk_to_somebody_is_not_told_to_drink_less(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("Can I talk to someone?")
    assert reply.text == translate("shop_unknown")


async def test_a_wine_that_is_as_the_pairing_wants_suits_the_dish(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("raclette, between 10 and 15 euros")
    assert "Raclette · €10–15" in reply.text
    assert translate("fallback_less_suited", dish="raclette") not in reply.text
    assert {wine.style for wine in wines_of(reply)} == {Style.WHITE}


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("a wine for choucroute", Style.WHITE),
        ("a wine for tarte flambée", Style.WHITE),
        ("a wine for foie gras", Style.SWEET),
    ],
)
async def test_a_dish_gets_the_wine_that_its_country_drinks_with_it(
    fallback: Fallback, text: str, style: Style
) -> None:
    reply = await Conversation(fallback).say(text)
    assert {wine.style for wine in wines_of(reply)} == {style}


async def test_unmet_filters_are_named(fallback: Fallback) -> None:
    reply = await Conversation(fallback).say(
        "a Riesling from Chile, sweet, under 15 euros"
    )
    assert "What's missing: Chile" in reply.text
    wines = wines_of(reply)
    assert wines
    assert all((wine.price or 0) <= 15 for wine in wines)
    cheapest = await Conversation(fallback).say("a Champagne under 3 euros")
    assert translate_into("en", "fallback_nothing") in cheapest.text
    assert not cheapest.wine_ids
    assert "Without the price limit, the least expensive that fits is" in cheapest.text
    named = await Conversation(fallback).say("Do you have Château Blorgmont?")
    assert named.text.endswith(
        translate_into("en", "fallback_no_name", name="Château Blorgmont")
    )


async def test_a_price_said_with_about_is_shown_so_and_a_cheaper_wine_is_better_than_none(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("an Albariño, around 30 euros")
    assert "Albariño · around €30" in reply.text
    assert "What's missing: price (around €30)." in reply.text
    assert reply.wines
    assert all("Albariño" in wine.grapes for wine in wines_of(reply))


async def test_the_currency_of_a_wish_stays_for_what_is_cheaper_or_better(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say("a red under 20 Swiss francs")
    better = await conversation.say("something better")
    cheaper = await conversation.say("cheaper", "and a white?")
    for reply in (first, better, cheaper):
        assert "CHF" in reply.text.split("\n\n")[0]
        assert reply.text.count("(≈ CHF") >= len(reply.wines) > 0
    champagne = await Conversation(fallback).say("a Champagne under 3 Swiss francs")
    assert re.search(r" NV, at ≈ €\d+ \(≈ CHF\s\d+\)\.", champagne.text)


@pytest.mark.parametrize(
    ("language", "question"),
    [("it", "Che tempo fa domani?"), ("es", "¿Qué tiempo hace mañana?")],
)
async def test_a_question_about_the_weather_is_no_question_about_time(
    language: str, question: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(question)
    not_understood = translate_into(language, "fallback_not_understood")
    assert reply.text.startswith(not_understood)


async def test_a_comparison_with_forgotten_wines_is_no_wish(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    await conversation.say("um tinto para bife", "algo mais barato")
    for _ in range(MAX_EARLIER_MESSAGES - 2):
        await conversation.say("o que é um vinho com defeito de rolha?")
    await conversation.say("um rosé para pizza")
    reply = await conversation.say("algo mais leve")
    assert reply.text.startswith("*Rosé · leve · pizza*")


async def test_a_price_for_several_bottles_is_shown_for_each(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    six = await conversation.say("six bottles of red, under 120 euros in all")
    assert six.text.startswith("*Red wine · 6 bottles, under €20 each*")
    white = await conversation.say("and a white?")
    assert "6 bottles, under €20 each" in white.text
    assert "each" not in (await conversation.say("up to 15 euros")).text


async def test_why_names_the_price_alone_and_says_if_a_wine_is_too_cheap(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    fitting = await conversation.say("a Champagne, up to 40 euros", "why?")
    assert "As you asked: sparkling wine · Champagne · ≈ €" in fitting.text
    assert "magnum" not in fitting.text
    cheap = await conversation.say("/new", "an Albariño, around 30 euros", "why?")
    assert "As you asked: Albariño\nLess expensive than you asked: ≈ €" in cheap.text


async def test_references_to_wines_shown_before(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    first = await conversation.say("a rosé for the balcony, up to 15 euros")
    others = await conversation.say("others, please")
    assert not set(first.wine_ids) & set(others.wine_ids)
    assert {wine.colour or Colour.ROSE for wine in wines_of(others)} == {Colour.ROSE}
    white = await conversation.say("a red for pizza under 12", "and a white instead?")
    assert {wine.style for wine in wines_of(white)} == {Style.WHITE}
    full = await conversation.say("forget it: a full-bodied red")
    like = await conversation.say(translate_into("en", "wish_like"))
    assert wines_of(full)[0].label in like.text
    lighter = await conversation.say(translate_into("en", "wish_lighter"))
    assert Body.FULL not in {wine.body for wine in wines_of(lighter)}


async def test_a_question_without_a_passage_that_names_a_wine_is_a_wish(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("Why does nobody stock Arinto?")
    assert reply.text.startswith("*Arinto*")
    assert reply.wines
    assert all("Arinto" in wine.grapes for wine in wines_of(reply))


PREGNANT = Person(safety=SafetyState(turn_concerns=frozenset({"pregnancy"})))
DRIVER = Person(safety=SafetyState(turn_concerns=frozenset({"driving"})))
ALLERGIC = Person(safety=SafetyState(allergies=frozenset({"egg"})))
PATRIOT = Person(facts=(Fact("hate", "countries=France", "French"),))


async def test_every_search_respects_the_person(fallback: Fallback) -> None:
    buttons = [translate_into("en", f"wish_{follow_up}") for follow_up in BUTTONS]
    for_pregnant: list[Wine] = []
    for text in ("a red for lamb", "something with bubbles", "others", *buttons):
        shown = {
            person: wines_of(await Conversation(fallback, person).say("a white", text))
            for person in (PREGNANT, ALLERGIC, PATRIOT)
        }
        for_pregnant += shown[PREGNANT]
        assert shown[ALLERGIC], text
        assert shown[PATRIOT], text
        assert all(Allergen.EGG not in wine.allergens for wine in shown[ALLERGIC]), text
        assert all(wine.country != "France" for wine in shown[PATRIOT]), text
    assert for_pregnant
    assert not any(wine.abv for wine in for_pregnant)


async def test_who_must_not_drink_is_shown_what_is_of_the_colour(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback, PREGNANT).say("a red for lamb")
    assert {wine.colour for wine in wines_of(reply)} == {Colour.RED}


async def test_who_must_not_drink_is_first_shown_what_suits_the_dish(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback, PREGNANT).say("something for pasta")
    first_wine, *others = wines_of(reply)
    assert Food.PASTA in first_wine.foods
    assert others
    assert reply.text.count("Not a classic match for pasta") == len(others)


async def test_a_driver_is_first_shown_all_wines_of_the_kind_without_alcohol(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback, DRIVER)
    first = wines_of(await conversation.say("a red for steak"))
    others = wines_of(await conversation.say("others"))
    kinds = {(wine.style, wine.colour) for wine in (*first, *others)}
    assert kinds == {(Style.ALCOHOL_FREE, Colour.RED)}
    _, *at_last = wines_of(await conversation.say("others"))
    assert {wine.style for wine in at_last} == {Style.RED}


async def test_a_driver_is_told_which_wines_have_alcohol(fallback: Fallback) -> None:
    conversation = Conversation(fallback, DRIVER)
    await conversation.say("a rosé for lamb")
    for text in ("others", "cheaper", "others"):
        reply = await conversation.say(text)
        strengths = [
            wine.abv for wine in wines_of(reply) if wine.style != Style.ALCOHOL_FREE
        ]
        assert strengths, text
        assert reply.text.count("Contains alcohol: ") == len(strengths)
        for strength in strengths:
            assert f"Contains alcohol: {strength:g}% vol" in reply.text


async def test_thanks_of_who_must_not_drink_show_no_wines(fallback: Fallback) -> None:
    pregnant = Person(SafetyState(earlier_concerns=frozenset({"pregnancy"})))
    reply = await Conversation(fallback, pregnant).say("thanks!")
    assert (reply.text, reply.wines) == (translate_into("en", "fallback_thanks"), ())


async def test_a_wish_for_alcohol_free_wine_is_not_taken_for_a_name(
    fallback: Fallback,
) -> None:
    text = "Tengo que conducir luego, ¿hay algo sin alcohol con burbujas o blanco?"
    wines = wines_of(await Conversation(fallback).say(text))
    assert {wine.style for wine in wines} == {Style.ALCOHOL_FREE}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "do u have any opus one"),
        ("de", "Habt ihr Opus One da?"),
        ("fr", "vous avez de l'Opus One ?"),
        ("es", "¿tenéis opus one?"),
        ("it", "Avete l'Opus One?"),
        ("nl", "hebben jullie Opus One"),
        ("pt", "vocês têm o Opus One?"),
    ],
)
async def test_a_wine_asked_for_by_its_name_is_found_and_said_to_be_in_stock(
    fallback: Fallback, language: str, text: str
) -> None:
    with use_language(language):
        reply = (await fallback.answer([StoredMessage("user", text)])).reply
        assert reply.text.startswith(translate("asked_in_stock"))
    (wine,) = wines_of(reply)
    assert wine.producer == "Opus One"


async def test_a_name_that_no_wine_has_is_told_with_the_closest_names(
    fallback: Fallback,
) -> None:
    unknown = await Conversation(fallback).say("Do you have Screaming Eagle?")
    assert (unknown.text, unknown.wines) == (
        "I can't find “Screaming Eagle” in our cellar.",
        (),
    )
    other_vintage = await Conversation(fallback).say("Do you have Opus One 1900?")
    assert other_vintage.text.startswith(
        "We don't have “Opus One 1900”, but we have this wine in another"
    )
    assert [wine.producer for wine in wines_of(other_vintage)] == ["Opus One"]


async def test_sparkling_wine_without_alcohol_is_what_who_wants_bubbles_asked_for(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback, PREGNANT).say("something sparkling")
    first_card = reply.text.split("**2.")[0]
    assert "lcohol-free sparkling" in first_card
    assert "But not" not in first_card


@pytest.mark.parametrize("concern", ["driving", "medication"])
async def test_drinks_without_alcohol_come_first_for_who_should_not_drink(
    fallback: Fallback, concern: Concern
) -> None:
    person = Person(SafetyState(turn_concerns=frozenset({concern})))
    reply = await Conversation(fallback, person).say(
        "something red for lamb, under 25 euros"
    )
    styles = [wine.style for wine in wines_of(reply)]
    assert styles == [Style.ALCOHOL_FREE] * 3


async def test_a_likely_concern_takes_little_away(fallback: Fallback) -> None:
    person = Person(SafetyState(likely_concerns=frozenset({"medication"})))
    reply = await Conversation(fallback, person).say(
        "something red for lamb, under 25 euros"
    )
    styles = [wine.style for wine in wines_of(reply)]
    assert styles == [Style.ALCOHOL_FREE, Style.RED, Style.RED]


async def test_an_allergy_that_was_lifted_is_no_wish_any_more(
    fallback: Fallback,
) -> None:
    allergic = Person(SafetyState(allergies=frozenset({"sulphites"})), user_id=1)
    chat = Conversation(fallback, allergic)
    assert "sulphites" in (await chat.say("I'm allergic to sulphites")).text
    chat.person = Person(user_id=1)
    reply = await chat.say("something red for lamb, no egg please")
    assert "sulphites" not in reply.text
    assert "egg" in (await chat.say("up to 20 euros")).text


async def test_a_taste_that_is_stated_does_not_keep_the_dish_before(
    fallback: Fallback,
) -> None:
    conversation = Conversation(fallback)
    await conversation.say("what goes with mushroom risotto?")
    reply = await conversation.say("I love Riesling and can't stand oaky Chardonnay")
    assert "risotto" not in reply.text.split("\n\n")[0]
    assert reply.text.startswith("*Riesling · no oak*")


@pytest.mark.parametrize(
    ("text", "bought"),
    [
        ("I bought three bottles of Chianti at 18 euros", "3 Chianti"),
        (
            "yesterday we bought a dozen Chablis 2021 at the supermarket",
            "12 Chablis 2021",
        ),
        ("he comprado 6 botellas de Barolo 2016 a 45 euros", "6 Barolo 2016"),
        ("I bought a case of Barolo 2016 for 270 euros", "1 Barolo 2016"),
        ("habe 2 Flaschen Château de la Tour gekauft", "2 Château de la Tour"),
        ("on a acheté une bouteille de Saint-Émilion 2016", "1 Saint-Émilion 2016"),
        ("ik heb drie flessen chianti gekocht", "3 chianti"),
        ("I bought two Barolo and three Barbera", ""),
        ("Ich habe 6 Barolo für je 45 Euro gekauft und drei Sancerre", ""),
        ("I bought a nice red", ""),
    ],
)
async def test_who_bought_wine_may_note_it_and_is_sold_none(
    text: str, bought: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(text)
    assert reply.bought == bought
    assert "/cellar add" in reply.text
    assert not reply.wines


@pytest.mark.parametrize(
    ("text", "bought"),
    [
        ("I bought 6 bottles of Barolo 2016 at 45 euros each", "6 Barolo 2016 45 EUR"),
        ("I bought 6 bottles of Barolo 2016, £45/bottle", "6 Barolo 2016 45 GBP"),
        ("I bought a Barolo 2016 for 45.50 euros", "1 Barolo 2016 45.50 EUR"),
        (
            "I bought 6 bottles of Barolo 2016 for 270 euros in total",
            "6 Barolo 2016 45 EUR",
        ),
        ("Ich habe 6 Barolo 2016 für je 45 Euro gekauft", "6 Barolo 2016 45 EUR"),
        ("habe 6 Flaschen Barolo 2016 à 45 Euro gekauft", "6 Barolo 2016 45 EUR"),
        (
            "j'ai acheté 6 bouteilles de Barolo 2016 à 45 euros pièce",
            "6 Barolo 2016 45 EUR",
        ),
        (
            "ho comprato 6 bottiglie di Barolo 2016 a 45 euro l'una",
            "6 Barolo 2016 45 EUR",
        ),
        (
            "compré 6 botellas de Barolo 2016, cada una a 45 euros",
            "6 Barolo 2016 45 EUR",
        ),
        (
            "comprei 6 garrafas de Barolo 2016 a 45 euros a garrafa",
            "6 Barolo 2016 45 EUR",
        ),
        (
            "ik heb 6 flessen Barolo 2016 gekocht voor 45 euro per stuk",
            "6 Barolo 2016 45 EUR",
        ),
    ],
)
async def test_the_price_of_a_bottle_is_noted_with_what_was_bought(
    text: str, bought: str, fallback: Fallback
) -> None:
    reply = await Conversation(fallback).say(text)
    assert reply.bought == bought
    assert "45" in reply.text
    # Nothing is left that the user could add by hand.
    assert "/cellar add" not in reply.text


async def test_a_new_wish_is_not_for_a_vegan_wine_again(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    vegan = await conversation.say("a vegan red from Spain under 15 euros")
    assert "vegan" in vegan.text.split("\n\n")[0]
    reply = await conversation.say("a white from Austria under 25 euros")
    assert "vegan" not in reply.text


@pytest.mark.parametrize(
    ("language", "red", "salmon"),
    [
        ("en", "a vegan full-bodied red from Spain, 10 to 15 euros", "and for salmon?"),
        ("de", "ein veganer kräftiger Roter aus Spanien, 10 bis 15 €", "und zu Lachs?"),
        ("fr", "un rouge corsé végan d'Espagne, 10 à 15 euros", "et pour du saumon ?"),
        ("it", "un rosso corposo vegano spagnolo, 10-15 euro", "e per il salmone?"),
        ("es", "un tinto con cuerpo vegano español, 10-15 euros", "¿y para salmón?"),
        ("pt", "um tinto encorpado vegano espanhol, 10-15 euros", "e para salmão?"),
        ("nl", "een volle vegan rode uit Spanje, 10 tot 15 euro", "en bij zalm?"),
    ],
)
async def test_a_dish_outweighs_the_earlier_kind_of_wine_if_none_of_it_suits(
    language: str, red: str, salmon: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    conversation.language = language
    await conversation.say(red)
    for_salmon = await conversation.say(salmon)
    cheaper = await conversation.say(translate_into(language, "wish_cheaper"))
    for reply in (for_salmon, cheaper):
        heading = reply.text.split("\n\n")[0]
        assert heading.startswith(f"*{country_in(language, 'Spain')} · ")
        assert heading.endswith(f" · {translate_into(language, 'vegan_yes')}*")
        assert reply.wines
        assert all(wine.country == "Spain" for wine in wines_of(reply))
        assert all(wine.body != Body.FULL for wine in wines_of(reply))


async def test_a_dish_for_which_a_dry_red_is_wrong_gets_another_wine(
    fallback: Fallback,
) -> None:
    for dish in ("oysters", "chocolate cake"):
        conversation = Conversation(fallback)
        reply = await conversation.say("a dry full-bodied red", f"and for {dish}?")
        cheaper = await conversation.say("cheaper")
        assert reply.text.startswith(f"*{dish.capitalize()}*")
        assert cheaper.text.startswith(f"*{dish.capitalize()} ·")
        assert Style.RED not in {wine.style for wine in wines_of(reply)}


async def test_a_dish_that_the_earlier_kind_of_wine_suits_keeps_it(
    fallback: Fallback,
) -> None:
    reply = await Conversation(fallback).say("a red under 20", "it is for lamb")
    assert reply.text.startswith("*Red wine · lamb · under €20*")


WITHOUT_ALCOHOL = {
    "en": ("for a cheese platter", "something sweet", "something without alcohol"),
    "de": ("zur Käseplatte", "halbtrocken", "etwas ohne Alkohol"),
    "fr": ("pour un plateau de fromages", "un doux", "quelque chose sans alcool"),
    "it": ("per un tagliere di formaggi", "amabile", "qualcosa senza alcol"),
    "es": ("para una tabla de quesos", "algo dulce", "algo sin alcohol"),
    "pt": ("para uma tábua de queijos", "meio seco", "algo sem álcool"),
    "nl": ("voor een kaasplank", "iets zoets", "iets zonder alcohol"),
}


@pytest.mark.parametrize("language", WITHOUT_ALCOHOL)
async def test_a_wish_for_wine_without_alcohol_keeps_only_the_dish(
    language: str, fallback: Fallback
) -> None:
    conversation = Conversation(fallback)
    conversation.language = language
    reply = await conversation.say(*WITHOUT_ALCOHOL[language])
    assert reply.text.split("\n\n")[0].count(" · ") == 1
    assert {wine.style for wine in wines_of(reply)} == {Style.ALCOHOL_FREE}
    dish = WITHOUT_ALCOHOL[language][0].split()[-1]
    assert dish in reply.text.split("\n\n")[0]


OCCASIONS = {
    "en": ("a sweet red", "a bottle for Christmas dinner", "it's for a birthday"),
    "de": ("ein Roter", "eine Flasche fürs Weihnachtsessen", "ist zum Geburtstag"),
    "fr": ("un rouge", "une bouteille pour le repas de Noël", "pour un anniversaire"),
    "it": ("un rosso", "un vino per il pranzo di Natale", "è per un compleanno"),
    "es": ("un tinto", "una botella para la cena de Navidad", "es para una boda"),
    "pt": ("um tinto", "um vinho para o jantar de Natal", "é para um aniversário"),
    "nl": ("een rode", "een fles voor het kerstdiner", "het is voor een verjaardag"),
}


@pytest.mark.parametrize("language", OCCASIONS)
async def test_a_wine_for_an_occasion_is_a_new_wish_and_the_occasion_is_not(
    language: str, fallback: Fallback
) -> None:
    red, christmas, birthday = OCCASIONS[language]
    conversation = Conversation(fallback)
    conversation.language = language
    first = await conversation.say(red)
    completed = await conversation.say(birthday)
    assert completed.text.split("\n\n")[0] == first.text.split("\n\n")[0]
    new = await conversation.say(christmas)
    assert translate_into(language, "fallback_any") in new.text.split("\n\n")[0]
    assert new.text.endswith(translate_into(language, "fallback_ask_dish"))
    assert new.wines


async def test_a_dish_does_not_bring_back_alcohol(fallback: Fallback) -> None:
    for dish in ("and for steak?", "and for salmon?", "and for chocolate cake?"):
        reply = await Conversation(fallback).say("something without alcohol", dish)
        assert {wine.style for wine in wines_of(reply)} == {Style.ALCOHOL_FREE}


DISLIKES = {
    "en": ("a red for lamb", "I can't stand Chardonnay", "something for salmon"),
    "de": ("ein Roter zu Lamm", "Ich mag keinen Chardonnay", "etwas zu Lachs"),
    "fr": ("un rouge pour l'agneau", "je déteste le chardonnay", "pour du saumon"),
    "it": ("un rosso per l'agnello", "Non mi piace lo Chardonnay", "per il salmone"),
    "es": ("un tinto para cordero", "No soporto el Chardonnay", "algo para salmón"),
    "pt": ("um tinto para borrego", "Não gosto de Chardonnay", "algo para salmão"),
    "nl": ("een rode bij lam", "Ik hou niet van Chardonnay", "iets bij zalm"),
}


@pytest.mark.parametrize("language", DISLIKES)
async def test_a_dislike_is_accepted_and_lasts(
    language: str, fallback: Fallback
) -> None:
    lamb, dislike, salmon = DISLIKES[language]
    conversation = Conversation(fallback)
    conversation.language = language
    await conversation.say(lamb)
    reply = await conversation.say(dislike)
    chardonnay = get_grape_name("Chardonnay", language)
    taste = translate_into(language, "fallback_without", name=chardonnay)
    assert reply.text == translate_into(language, "fallback_dislike", taste=taste)
    with use_language(language):
        noted = add_change_notes(reply, Person(user_id=1), dislike, undo_id=0)
    assert [fact.value for fact in noted.suggested_facts] == ["grapes=Chardonnay"]
    for_salmon = await conversation.say(salmon)
    assert for_salmon.wines
    assert all("Chardonnay" not in wine.grapes for wine in wines_of(for_salmon))


async def test_a_dislike_of_a_wine_shown_gets_others(fallback: Fallback) -> None:
    conversation = Conversation(fallback)
    shown = await conversation.say("a Chardonnay under 30 euros")
    assert shown.wines
    reply = await conversation.say("I hate Chardonnay")
    assert reply.text.startswith("*")
    assert reply.wines
    assert all("Chardonnay" not in wine.grapes for wine in wines_of(reply))
