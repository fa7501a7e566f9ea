"""What tasting notes name, in each language: nothing is missing, and nothing that they deny."""

import pytest

from agent.i18n import languages, translate_into, use_language
from agent.query_reading.aromas import (
    find_aromas,
    load_aroma_words,
    split_phrases,
)
from agent.sommelier.tasting_notes import describe_taste
from agent.sommelier.wine import Wine

WORDS = load_aroma_words()


def test_no_language_misses_an_aroma() -> None:
    assert WORDS.keys() == set(languages())
    for code, words in WORDS.items():
        assert words.aromas.keys() == WORDS["en"].aromas.keys(), code
        for names in words.country_names.values():
            assert names.keys() <= words.aromas.keys(), code


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
