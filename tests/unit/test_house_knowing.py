"""What is asked to know rather than to drink: faults by their signs, greetings, comparisons."""

import pytest

from agent.house_sommelier import HouseSommelier
from agent.house_sommelier.topics import Likely, asked_for, offered
from tests.house import answer_of, answered, conversation, filters, spoken


async def told(*said: str) -> str:
    """What the house says where it has no library."""
    response = await HouseSommelier().generate_with_tools(conversation(*said))
    return answer_of(response).intro


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("there is a piece of glass in my bottle", "Do not drink"),
        ("im Flaschenhals fehlt ein Stück Glas, gebrochen", "nicht trinken"),
        ("il y a des éclats de verre dedans", "Ne le buvez pas"),
        ("hay un trozo de vidrio en la copa", "No lo beba"),
        ("c'è una scheggia di vetro", "Non lo beva"),
        ("er zit een scherf glas in de fles", "Drink het niet"),
        ("mein Wein riecht nach fauligen Eiern", "Reduktion"),
        ("this Chianti smells like a damp basement", "cork taint"),
        ("mon blanc pique et pétille, c'est normal ?", "gaz carbonique"),
        ("il vino è diventato marrone", "ossidato"),
        ("der Korken ist zerbröselt", "Korkbrösel"),
        ("mijn wijn smaakt naar muis", "muizensmaak"),
        ("there are bits of cork floating in my glass", "crumbs of cork"),
        ("the neck broke with the cork, bits of glass in my glass", "Do not drink"),
        ("why do I get a headache from red wine?", "alcohol and too little water"),
        ("huele a acetona", "acidez volátil"),
        ("ho trovato dei cristalli sul tappo", "tartrati"),
        ("is my 1994 claret still drinkable?", "Perhaps"),
        ("kann man einen Barolo von 1998 noch trinken?", "Vielleicht"),
        ("is it still ok to drink a bottle opened last week?", "sparkling wine one to three"),
    ],
)
async def test_a_fault_is_known_by_its_signs(text: str, says: str) -> None:
    assert says in await told(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("un chianti classico del 2021 va decantato?", "caraffa"),
        ("wie lange hält ein offener grüner veltliner im kühlschrank", "nach dem Öffnen"),
        ("mijn barolo heeft bezinksel, kan ik die drinken", "Depot is onschuldig"),
        ("why is amarone so expensive", "costs more to make"),
        ("can i freeze leftover pinot noir", "ice cubes"),
        ("cuánto aguanta abierto un rioja", "una vez abierto"),
    ],
)
async def test_what_is_asked_of_any_wine_is_told_whatever_its_name(text: str, says: str) -> None:
    assert says in await told(text)


@pytest.mark.parametrize(
    "text",
    [
        "egg curry, which wine?",
        "a wine for a cheese platter with apple and nuts",
        "a fizzy red that's a bit sweet",
        "ein Wein zu Eiern mit Speck",
        "un rouge pour une omelette",
        "what should I pour with a fiery curry?",
    ],
)
async def test_a_wish_with_a_word_of_a_fault_is_a_search(text: str) -> None:
    assert await filters(text)


@pytest.mark.parametrize(
    "text",
    ["yo what's up", "wesh", "moinsen", "ciao bella", "epa", "hoi hoi", "grüezi", "¿qué onda?"],
)
async def test_a_greeting_in_slang_is_greeted(text: str) -> None:
    answer = await spoken(text)
    greeted = ("Hello", "Bonjour", "Hallo", "Buongiorno", "¡Hola")
    assert answer.intro.split("!")[0].strip() in greeted


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("are you a real person?", "a program"),
        ("bist du ein echter Mensch?", "ein Programm"),
        ("t'es une vraie personne ?", "un programme"),
        ("¿eres un robot?", "un programa"),
        ("sei umano?", "un programma"),
        ("ben je een echt mens?", "een programma"),
    ],
)
async def test_the_house_says_that_it_is_no_person(text: str, says: str) -> None:
    assert says in (await spoken(text)).intro


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("difference between crémant and prosecco?", "tank"),
        ("Chablis oder Pouilly-Fuissé, was ist der Unterschied?", "Pouilly-Fuissé"),
        ("cava vs champagne", "bottle"),
    ],
)
async def test_two_wines_are_compared_by_grape_and_method(text: str, says: str) -> None:
    assert says in (await spoken(text)).intro


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("how many hectares does Barolo have?", "not in my library"),
        ("wie viele Hektar hat die Nahe?", "nicht in meiner Bibliothek"),
        ("combien d'hectares fait Sancerre ?", "pas dans ma bibliothèque"),
    ],
)
async def test_what_no_topic_tells_is_not_in_the_library(text: str, says: str) -> None:
    assert says in await told(text)


@pytest.mark.parametrize(
    ("first", "then", "limit"),
    [
        ("a red under 15 for pasta", "and at 10?", 10),
        ("white for sea bass, 25 max", "what if I go to 60?", 60),
        ("un rosso per il cinghiale", "e a 12?", 12),
        ("ein Roter zum Gulasch", "und bis 40?", 40),
        ("un rouge pour le canard", "et à 9 ?", 9),
    ],
)
async def test_a_bare_number_in_a_talk_is_a_price(first: str, then: str, limit: int) -> None:
    asked = await filters(first, then)
    assert asked["max_price"] == limit
    assert asked["foods"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a wine with good bimbam", "bimbam"),
        ("un vin pour un plat de zglorg", "zglorg"),
        ("Wein für Kaltschale mit Quarkbällchen", "Kaltschale"),
    ],
)
async def test_words_not_understood_are_named(text: str, word: str) -> None:
    wine = {"wine_id": "a", "name": "A", "style": "red"}
    assert word in (await answered(text, wines=[wine])).intro


@pytest.mark.parametrize(
    ("first", "then", "regions"),
    [
        ("a red for steak", "toskanisch", ["Tuscany"]),
        ("un bianco per il pesce", "siciliano se possibile", ["Sicily"]),
        ("un blanc pour les huîtres", "plutôt alsacien", ["Alsace"]),
    ],
)
async def test_a_bare_adjective_of_a_region_refines(
    first: str, then: str, regions: list[str]
) -> None:
    asked = await filters(first, then)
    assert asked["regions"] == regions
    assert asked["foods"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("un bordeaux rouge", "trop cher"),
        ("a red Rioja", "too dear"),
        ("ein Riesling von der Mosel", "zu teuer"),
    ],
)
async def test_what_is_too_dear_keeps_its_place(first: str, then: str) -> None:
    asked = await filters(first, then)
    assert "regions" in asked
    assert "regions" not in asked.get("soft", ())


async def test_plain_english_is_no_country() -> None:
    assert "countries" not in await filters("a red for lamb, in plain english please")


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (
            ("how long does an opened bottle of red last?", "and port?"),
            "keep for weeks",
        ),
        (("wie lange hält offener Rotwein?", "und Sekt?"), "Ein bis drei Tage"),
        (("what does minerality mean?", "what is zglorg"), "not in my library"),
        (("do I decant a Barolo?",), "decant"),
        (("can you freeze wine?",), "freez"),
        (("¿por qué unos vinos valen 8 euros y otros 100?",), "cuesta"),
        (("got a 2017 barolo tonight, when should i open it and do i need a jug",), "two hours"),
        (("a qué temperatura se sirve el cava? mi cuñado dice que casi helado",), "6 a 8"),
        (("wie lange kann ein Barolo lagern?",), "8 bis 25 Jahre"),
        (("what about an orange one, never tried, is it weird",), "skins"),
        (("een rode wijn", "die rode, kan die een beetje gekoeld? het wordt 30 graden"), "koel"),
        (("c'est quoi l'amarone", "et le ripasso ?"), "ripasso"),
    ],
)
async def test_a_question_finds_its_topic_and_what_goes_on_with_it(
    said: tuple[str, ...], says: str
) -> None:
    messages = conversation(*said, reply="So it is.")
    assert says in answer_of(await HouseSommelier().generate_with_tools(messages)).intro


def test_two_topics_near_each_other_are_both_answered_and_none_far_behind() -> None:
    near = [Likely("port", 0.4), Likely("port_styles", 0.3), Likely("sherry", 0.1)]
    assert asked_for(near) == ("port", "port_styles")
    assert asked_for([Likely("port", 0.4), *near[2:]]) == ("port",)
    assert asked_for([Likely("port", 0.15), Likely("sherry", 0.01)]) == ()
    assert offered([Likely("port", 0.15), Likely("sherry", 0.01)]) == ("port",)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (("I bought a red here, 20 euros, and it smelled of wet cardboard",), "cork taint"),
        (("der Rosé von euch war eine Plörre, 14 euro!",), "Das tut mir leid"),
        (("a che ora chiudete stasera?",), "orari"),
        (("haha ok. y cómo sabes a qué sabe un vino?",), "comparo"),
        (("how do I store wine at home?", "next to the fridge ok?"), "kitchen"),
        (("what is corked wine?", "can i drink it or will i get ill?"), "not make you ill"),
        (("cos'è il metodo classico?", "e il Franciacorta è fatto così?"), "Franciacorta"),
        (("Sancerre ou Chablis ?", "lequel avec des huîtres ?", "pourquoi"), "huîtres"),
    ],
)
async def test_what_people_ask_and_tell_in_talks_is_met(said: tuple[str, ...], says: str) -> None:
    messages = conversation(*said, reply="So it is.")
    answer = answer_of(await HouseSommelier().generate_with_tools(messages))
    assert says in f"{answer.intro} {answer.closing}"
    assert not answer.wines


async def test_of_which_grape_a_place_makes_its_wine_is_answered_with_yes_or_no() -> None:
    text = "On est bien d'accord que le Chablis c'est du sauvignon, mon beauf veut pas me croire"
    assert (await told(text)).startswith("Plutôt non : Chablis: vin blanc")


LISTS = [
    ("la carta tiene godello 28, mencia joven 22 y lambrusco 14. pedimos pulpo, cual?", "Godello"),
    ("wine list: malbec 32, chianti 28, riesling 30. we're having ribeye. which?", "Malbec"),
    ("auf der karte: silvaner 24, spätburgunder 31. ich ess zander, welchen?", "Silvaner"),
]


@pytest.mark.parametrize(("text", "name"), LISTS)
async def test_of_a_list_typed_with_its_prices_one_is_chosen(text: str, name: str) -> None:
    assert name in (await told(text)).partition(".")[0]
