"""What tasting notes name, in each language: nothing is missing, and nothing that they deny."""

import pytest

from agent.i18n import languages, translate_into, use_language
from agent.query_reading.aromas import (
    find_aromas,
    is_aroma,
    load_aroma_words,
    split_phrases,
)
from agent.query_reading.request import read_request
from agent.query_reading.tables import load_rows
from agent.sommelier.tasting_notes import describe_taste
from agent.sommelier.wine import Wine

WORDS = load_aroma_words()


def test_no_language_misses_an_aroma() -> None:
    assert WORDS.keys() == set(languages())
    for code, words in WORDS.items():
        assert words.aromas.keys() == WORDS["en"].aromas.keys(), code
        for names in words.country_names.values():
            assert names.keys() <= words.aromas.keys(), code


def test_no_taste_of_a_wish_has_the_name_of_an_aroma() -> None:
    for row in load_rows():
        assert not any(is_aroma(taste) for taste in row.meanings.get("text", ()))


@pytest.mark.parametrize("code", WORDS)
def test_every_aroma_is_found_in_a_sentence_unless_it_is_denied(code: str) -> None:
    words = WORDS[code]
    denial = split_phrases(words.denials)[0]
    subject = split_phrases(words.other_subjects)[0]
    for aroma, text in words.aromas.items():
        phrases = split_phrases(text)
        for names in words.country_names.values():
            if aroma in names:
                phrases.append(names[aroma])
        for phrase in phrases:
            sentence = translate_into(code, "notes_aromas", aromas=phrase)
            assert find_aromas(sentence, code) == (aroma,), phrase
            assert find_aromas(f"{denial} {phrase}", code) == ()
            assert find_aromas(f"{subject} {phrase}", code) == ()


NOTES = {
    "Black cherry, orange blossom and a hint of smoke.": (
        "Schwarzkirsche, Orangenblüte, Rauch"
    ),
    "No sulphites, no oak, only juicy plum and violet.": "Pflaume, Veilchen",
    "Ripe lemon without oak, vanilla or toast, but with almond.": "Zitrone, Mandel",
    "Redcurrant and lime from chalk, for chocolate.": "rote Johannisbeere, Limette",
    "Pale orange wine, cherry-coloured, with a little honey.": "Honig",
    "Rosé with a cherry-red hue, yet peppery.": "Pfeffer",
    "Fig, quince, pear, peach and plum.": "Feige, Quitte, Birne, Pfirsich",
    "Simple, fresh and affordable.": "",
}


@pytest.mark.parametrize(("notes", "shown"), NOTES.items())
def test_a_wine_tastes_of_what_its_notes_affirm(notes: str, shown: str) -> None:
    line = _taste(notes, "en", "de")
    assert line.removeprefix("Duft und Geschmack: ") == shown


def test_notes_of_any_language_with_a_table_are_told_in_any_other() -> None:
    german = "Veilchen, schwarzer Pfeffer und etwas Rauch, ohne Holz."
    assert _taste(german, "de", "fr") == "Arômes\u00a0: violette, poivre noir, fumée"
    assert _taste(german, "de", "de") == german
    assert _taste(german, "pl", "de") == ""
    assert _taste("Smoky, with lemon.", "en", "pt-PT") == (
        "Aromas e sabores: fumo, limão"
    )


def _taste(notes: str, notes_language: str, language: str) -> str:
    wine = Wine(
        id="1",
        producer="Muga",
        name="Reserva",
        country="Spain",
        notes=notes,
        notes_language=notes_language,
    )
    with use_language(language):
        return describe_taste(wine)


WISHES = {
    "a white that smells of honey and white peach": {"text": ("honey", "white_peach")},
    "a red with notes of plum, hints of smoke,": {"text": ("plum", "smoke")},
    "a red tasting of chocolate": {"text": ("chocolate",)},
    "a red with violet notes, no notes of tar": {
        "text": ("violet",),
        "without_text": ("tar",),
    },
    "ein Rotwein, der nach Veilchen duftet": {"text": ("violet",)},
    "ein Weißwein mit Honignoten": {"text": ("honey",)},
    "un rouge aux arômes de violette et de réglisse": {"text": ("violet", "liquorice")},
    "un rosso con sentori di viola": {"text": ("violet",)},
    "quisiera un tinto con aromas de violeta": {"text": ("violet",)},
    "um tinto com notas de violeta": {"text": ("violet",)},
    "een rode wijn die naar viooltjes ruikt": {"text": ("violet",)},
    "a wine for chocolate": {},
}


@pytest.mark.parametrize(("message", "tastes"), WISHES.items())
def test_a_wish_for_an_aroma_is_understood(
    message: str, tastes: dict[str, tuple[str, ...]]
) -> None:
    request = read_request(message)
    assert {"text", "without_text"} & request.filters.keys() == tastes.keys()
    assert request.filters.items() >= tastes.items()
    assert bool(request.dishes) == (not tastes)
    assert not request.unread_words
