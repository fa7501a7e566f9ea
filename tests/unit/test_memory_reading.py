"""What messages tell of who writes, in all languages, and what they do not."""

import pytest

from agent.memory.reading import read_message
from agent.turn import Fact

RIESLING = Fact("hate", "grapes=Riesling", "Riesling")
KNOWN = (RIESLING, Fact("budget", "20 EUR", "usually 20"), Fact("allergy", "egg", "egg"))

TOLD = {
    "I hate Chardonnay": "hate grapes=Chardonnay",
    "I hate Chardonnay, what do you have for fish?": "hate grapes=Chardonnay",
    "remember: sulphites give me headaches": "allergy sulphites",
    "I'm allergic to egg": "allergy egg",
    "usually up to 20": "budget 20 EUR",
    "I love Riesling and hate Merlot": "like grapes=Riesling, hate grapes=Merlot",
    "I can't stand Pinotage or Gewürztraminer.": "hate grapes=Pinotage, hate grapes=Gewürztraminer",
    "Remember: no Chardonnay": "hate grapes=Chardonnay",
    "I'm not a big fan of sweet wines": "hate sweetness=sweet|luscious",
    "Merlot is not for me": "hate grapes=Merlot",
    "I hate Chardonnay so show me a white for fish": "hate grapes=Chardonnay",
    "Riesling liebe ich, Chardonnay hasse ich.": "like grapes=Riesling, hate grapes=Chardonnay",
    "Ich mag keinen trockenen Rotwein": "hate styles=red;sweetness=bone_dry|dry",
    "Chardonnay mag ich gar nicht": "hate grapes=Chardonnay",
    "Ich trinke am liebsten Riesling von der Mosel": "like grapes=Riesling;regions=Mosel",
    "Merk dir: ich vertrage keine Sulfite": "allergy sulphites",
    "Normalerweise gebe ich bis 25 Euro aus": "budget 25 EUR",
    "Je déteste le Chardonnay": "hate grapes=Chardonnay",
    "J'adore le chenin de Loire": "like grapes=Chenin Blanc;regions=Loire",
    "D'habitude je mets 15 euros maximum": "budget 15 EUR",
    "odio el Chardonnay": "hate grapes=Chardonnay",
    "el tempranillo me encanta": "like grapes=Tempranillo",
    "No me gusta el vino dulce": "hate sweetness=sweet|luscious",
    "Non mi piace il Merlot": "hate grapes=Merlot",
    "adoro il Barolo": "like regions=Barolo",
    "ik hou niet van zoete wijn": "hate sweetness=sweet|luscious",
    "no oak ever, and never show me Merlot": "hate text=oaky, hate grapes=Merlot",
    "mein Mann mag keinen Rotwein und ich mag keinen Riesling": "hate grapes=Riesling",
    "ich gebe normal bis 15 euro aus": "budget 15 EUR",
    "Ik hou van stevige rode wijn": "like bodies=medium_full|full;styles=red",
    "Merlot 8 von 10, Zweigelt 5 von 10": "like grapes=Merlot, note Zweigelt 5 von 10",
    "a cheap Soave at the pub, 3/10 yuck": "hate regions=Soave",
    "u can call me Baz": "note u can call me Baz",
    "remember I prefer screwcaps": "note remember I prefer screwcaps",
    "my limit is 12 pounds a bottle": "budget 12 GBP",
    "ich steh total auf Gamay": "like grapes=Gamay",
    "Süße Weine sind nix für mich": "hate sweetness=sweet|luscious",
    "je m'appelle Luc, un rouge pour l'agneau ?": "note je m'appelle Luc",
    "il prosecco mi ha stufato e i rossi li bevo solo d'inverno": "hate regions=Prosecco",
}
NOT_TOLD = """
    I'd love a Rioja tonight | I'd like something like Barolo | My wife hates Chardonnay
    Do you like Chardonnay? | no Chardonnay please | I don't hate riesling | do people like Merlot?
    Ich hätte gern einen Riesling | J'aimerais un Bordeaux | Me gustaría un Rioja | Vorrei un Barolo
    My son is allergic to milk | Something red for lamb under 25 | a white, not Chardonnay
    who told you I like sweet wine? | oublie que je n'aime pas le chardonnay
    what would you give a Barolo, 9/10? | my sister gave the Chianti 2/10 | call me when it arrives
    half of them only drink white | die Hälfte trinkt nur weiß | la moitié ne boit que du blanc
    meine Frau hasst Merlot | mia moglie odia il Merlot | I used to hate Merlot
"""
UNLEARNED = {
    "forget that I hate riesling": "grapes=Riesling",
    "I no longer hate Riesling": "grapes=Riesling",
    "actually I like riesling now": "grapes=Riesling",
    "vergiss, dass ich keinen Riesling mag": "grapes=Riesling",
    "oublie que je déteste le riesling": "grapes=Riesling",
    "olvida que odio el riesling": "grapes=Riesling",
    "ah, in realtà va bene tutto, dimentica il Riesling": "grapes=Riesling",
    "forget my budget": "20 EUR",
    "forget my egg allergy": "egg",
    "I hate Merlot": "",
    "usually up to 30": "20 EUR",
}


@pytest.mark.parametrize(("said", "facts"), TOLD.items())
def test_what_is_told_for_good(said: str, facts: str) -> None:
    learned = read_message(said).learned
    assert ", ".join(f"{each.kind} {each.value}" for each in learned) == facts
    for fact in learned:
        assert fact.kind == "allergy" or fact.said.lower() in said.lower()


@pytest.mark.parametrize("said", [each.strip() for each in NOT_TOLD.replace("\n", "|").split("|")])
def test_what_is_of_now_or_of_others_is_not(said: str) -> None:
    assert read_message(said).learned == ()


@pytest.mark.parametrize(("said", "value"), UNLEARNED.items())
def test_what_holds_no_more(said: str, value: str) -> None:
    assert ", ".join(each.value for each in read_message(said, KNOWN).unlearned) == value


@pytest.mark.parametrize(
    ("said", "is_all"),
    [
        ("I hate Chardonnay", True),
        ("I hate Chardonnay. Thanks!", True),
        ("I hate Chardonnay, what do you have for fish?", False),
        ("We love big reds. What goes with lamb under 30?", False),
        ("I'm allergic to egg", False),
        (
            "making green curry tonight, pretty spicy. she says riesling but i hate sweet wine",
            False,
        ),
        ("ich hasse riesling, alle sagen ich muss ihn mögen. was stimmt mit mir nicht", False),
        ("Odio el vino dulce, hoy hago una paella para seis", False),
        ("j'aime pas le sucré, et ce soir c'est raclette", False),
        ("adoro il Barolo, stasera brasato", False),
        ("ik hou niet van zoet, we eten vanavond oesters", False),
        ("I hate Chardonnay, Merlot and anything oaky, ok", True),
        ("Ich mag keinen Riesling, wirklich nicht", True),
        ("je déteste le boisé, conseillez-moi un rouge", False),
        ("odio i vini legnosi e amo il lambrusco. che rosso mi consigli", False),
        ("can't stand buttery stuff, love a sharp zingy thing. surprise me", False),
    ],
)
def test_whether_more_is_asked(said: str, is_all: bool) -> None:
    assert read_message(said).is_all is is_all


def test_words_of_others_tell_nothing() -> None:
    assert read_message("what is that?\n\n> I hate Chardonnay").learned == ()
    forwarded = "[forwarded, written by somebody else]\n> I hate Chardonnay"
    assert read_message(forwarded).learned == ()


def test_what_is_asked_for_by_name_is_a_wish_of_now() -> None:
    assert read_message("a Riesling for my mother", KNOWN).named == ({"grapes": ("Riesling",)},)
    assert read_message("a white, no Riesling", KNOWN).named == ({"styles": ("white",)},)


@pytest.mark.parametrize(
    ("text", "hated"),
    [
        ("un blanco o rosado y un tinto que no sea pesado. ah y odio el verdejo", "verdejo"),
        ("ein weißer oder rosé und ein roter, nicht so schwer. ich hasse silvaner", "silvaner"),
        ("white and red please. oh and i hate rosé", "rosé"),
    ],
)
def test_what_is_hated_in_one_sentence_is_not_what_another_asks_for(text: str, hated: str) -> None:
    assert [(fact.kind, fact.said) for fact in read_message(text).learned] == [("hate", hated)]
