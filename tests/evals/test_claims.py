"""What a model affirms without a source: true sentences pass, invented ones are sent back.

The sentences were written before the tables of words (`claims` in `languages/`). Those that are
`held_out` were not looked at when the tables were completed.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.documents.shop import SHOP_DOCUMENT
from agent.engine.contract import Evidence, Source
from agent.i18n import use_language
from agent.sommelier.answer import grounding_problem, keep_valid
from agent.sommelier.grounding import RememberedAllergies
from agent.sommelier.offers import Offer
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.vocabulary import Allergen, OfferKind
from tests.fakes import CHINON
from tests.library import SUR_LIE

FOLDER = Path(__file__).parent
OFFERS = (
    Offer(price=16.5, stock=12),
    Offer(kind=OfferKind.HALF, price=9, stock=5),
    Offer(kind=OfferKind.MAGNUM, price=35, stock=1),
)
WINES = {
    "plain": CHINON,
    "counted": CHINON.model_copy(update={"offers": OFFERS}),
    "gone": CHINON.model_copy(update={"offers": (Offer(price=16.5, in_stock=False),)}),
    "vegan": CHINON.model_copy(update={"notes": "Fresh. Vegan."}),
    "veganistisch": CHINON.model_copy(update={"notes": "Fris. Veganistisch."}),
    "not vegan": CHINON.model_copy(update={"notes": "Frisch. Nicht vegan."}),
    "egg": CHINON.model_copy(update={"allergens": (Allergen.EGG, Allergen.SULPHITES)}),
    "scored": CHINON.model_copy(update={"notes": "92 points from Robert Parker."}),
}
SHOP = (
    "We deliver within Ireland in two to three days, for 6.50 euros. Opening hours: Tuesday to "
    "Saturday, 10 to 18."
)


def read(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]


def make_sources(row: dict[str, Any]) -> dict[str, Source]:
    """Return the wine of a row, and the document about the shop if it has one."""
    wine = WINES[row["wine"]]
    sources: dict[str, Source] = {wine.id: wine}
    if row["has_document"]:
        sources["shop"] = replace(
            SUR_LIE, id="shop", path=SHOP_DOCUMENT, title="The shop", text=SHOP
        )
    return sources


def find_problems(row: dict[str, Any]) -> list[str]:
    """Return what is wrong with a sentence as the description of a wine, and in the intro."""
    wine = WINES[row["wine"]]
    evidence = Evidence(make_sources(row), ["?"])
    problems: list[str] = []
    with use_language(row["language"]):
        for description, intro in ((row["sentence"], ""), ("", row["sentence"])):
            item = WineRecommendation(wine_id=wine.id, description=description)
            answer = SommelierResponse(
                response_type="recommendation", intro=intro, wines=[item]
            )
            problems.append(grounding_problem(answer, evidence) or "")
    return problems


def said(language: str, sentence: str, **facts: Any) -> dict[str, Any]:
    """Return a row with a sentence, by default on a wine of which nothing special is known."""
    row = {"language": language, "sentence": sentence, "wine": "plain"}
    return row | {"has_document": False} | facts


@pytest.mark.parametrize("held_out", [False, True])
def test_no_true_sentence_is_cut(held_out: bool) -> None:
    rows = [row for row in read("claims_true") if row["held_out"] is held_out]
    assert [row["sentence"] for row in rows if any(find_problems(row))] == []


@pytest.mark.parametrize("held_out", [False, True])
def test_at_least_four_of_five_invented_sentences_are_stopped(held_out: bool) -> None:
    rows = [row for row in read("claims_invented") if row["held_out"] is held_out]
    missed = [row["sentence"] for row in rows if not all(find_problems(row))]
    assert len(missed) <= len(rows) / 5, missed


def test_how_many_of_the_wines_are_in_stock_is_no_count_of_bottles() -> None:
    for sentence in (
        "Alle drie zijn op voorraad.",
        "Van deze drie zijn ze op voorraad.",
    ):
        assert not any(find_problems(said("nl", sentence))), sentence


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Reckon with half a bottle for each of you."),
        ("de", "Rechnen Sie mit einer halben Flasche pro Person."),
        ("fr", "Comptez une demi-bouteille par personne."),
        ("es", "Calcule media botella por persona."),
        ("it", "Calcoli mezza bottiglia a persona."),
        ("nl", "Reken op een halve fles per persoon."),
        ("pt", "Conte com meia garrafa por pessoa."),
    ],
)
def test_half_a_bottle_for_each_guest_is_no_size(language: str, sentence: str) -> None:
    assert not any(find_problems(said(language, sentence)))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("de", "Wir liefern in zwei bis drei Tagen nach Irland"),
        ("fr", "Nous livrons en Irlande en deux à trois jours"),
        ("it", "Siamo aperti fino alle 18"),
        ("nl", "We bezorgen binnen drie dagen"),
    ],
)
def test_what_is_said_of_the_shop_must_cite_the_document_that_says_it(
    language: str, sentence: str
) -> None:
    for ending in (" [shop.md].", ". [shop.md]"):
        cited = said(language, sentence + ending, has_document=True)
        assert not any(find_problems(cited)), ending
    for uncited in (sentence + ".", f"{sentence}. Sur lie [shop.md]."):
        problems = [*find_problems(said(language, uncited, has_document=True))]
        assert problems, uncited
        assert all("[path]" in problem for problem in problems), uncited


def test_a_document_that_is_silent_on_delivery_grounds_none() -> None:
    sources: dict[str, Source] = {SUR_LIE.id: SUR_LIE}
    sentence = f"We deliver within two days [{SUR_LIE.path}]."
    answer = SommelierResponse(response_type="informational", intro=sentence)
    problem = grounding_problem(answer, Evidence(sources, ["?"]))
    assert problem is not None


def test_a_cited_sentence_is_kept_with_the_citation_behind_its_full_stop() -> None:
    sentence = "We deliver within Ireland. [shop.md]"
    row = said("en", f"Parker gave it 97 points. {sentence}", has_document=True)
    answer = SommelierResponse(response_type="informational", intro=row["sentence"])
    part = keep_valid(answer, Evidence(make_sources(row), ["?"]))
    assert part is not None
    assert part.answer.intro == sentence


@pytest.mark.parametrize(
    "sentence", ["Daar zit geen ei in.", "Er ist ohne Ei.", "It contains no egg."]
)
def test_a_vegan_wine_may_be_said_to_lack_egg(sentence: str) -> None:
    language = {"D": "nl", "E": "de", "I": "en"}[sentence[0]]
    for wine in ("vegan", "veganistisch"):
        assert not any(find_problems(said(language, sentence, wine=wine)))
    assert all(find_problems(said(language, sentence, wine="not vegan")))


def find_problem_after(
    asked: str, language: str, sentence: str, **facts: str
) -> str | None:
    """Return what is wrong with a sentence in the intro of an answer to what was asked."""
    wine = CHINON.model_copy(update=facts)
    answer = SommelierResponse(
        response_type="recommendation",
        intro=sentence,
        wines=[WineRecommendation(wine_id=wine.id)],
    )
    with use_language(language):
        return grounding_problem(answer, Evidence({wine.id: wine}, [asked]))


@pytest.mark.parametrize(
    ("language", "asked", "claim", "honest"),
    [
        (
            "pt",
            "Sou intolerante ao leite, que espumante posso servir?",
            "Nos espumantes brutos o leite nunca é usado, por isso pode servi-lo sem preocupação.",
            "Leia sempre também o rótulo, onde os vestígios de leite têm de estar indicados.",
        ),
        (
            "en",
            "I can't have milk",
            "Milk is never used here, so serve it without worry.",
            "Milk may have been used, so please ask the shop.",
        ),
        (
            "de",
            "Ich vertrage keine Milch",
            "Milch wird hier nie verwendet, Sie können ihn bedenkenlos trinken.",
            "Ob Milch verwendet wurde, ist nicht bekannt.",
        ),
        (
            "es",
            "soy alérgica al huevo",
            "Con su alergia al huevo puede beberlo sin problema.",
            "No consta si lleva huevo, consulte la etiqueta.",
        ),
    ],
)
def test_a_guest_with_an_allergy_is_not_reassured_without_a_source(
    language: str, asked: str, claim: str, honest: str
) -> None:
    assert find_problem_after(asked, language, claim)
    assert find_problem_after(asked, language, honest) is None


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("es", "También lo tenemos en magnum, por si quieres lucirte de verdad."),
        ("en", "We have it in magnum, if you want to impress."),
        ("es", "Está disponible en magnum por si quieres lucirte."),
        ("en", "It is available in magnum if you like."),
        ("de", "Es gibt ihn auch als Magnum wenn Sie möchten."),
        ("fr", "Il existe aussi en magnum si vous voulez."),
        ("it", "È disponibile in magnum se vuole."),
        ("nl", "Hij is ook als magnum verkrijgbaar als u wilt."),
        ("pt", "Está disponível em magnum se quiser."),
        ("de", "Es gibt ihn auch als Magnum, wenn Sie glänzen wollen."),
        ("nl", "Hij is ook als magnum verkrijgbaar, als u indruk wilt maken."),
    ],
)
def test_a_condition_behind_a_claim_does_not_excuse_it(
    language: str, sentence: str
) -> None:
    assert all(find_problems(said(language, sentence)))


@pytest.mark.parametrize(
    "sentence",
    [
        "Deze is zonder toegevoegde zwavel gebotteld.",
        "De naam zegt het al: er is geen zwavel aan toegevoegd.",
    ],
)
def test_a_wine_whose_notes_say_so_has_no_sulphites_added(sentence: str) -> None:
    asked = "Is er een wijn zonder toegevoegde sulfiet?"
    for notes in ("Bottled unsulphured.", "Vinified without added sulphites."):
        assert find_problem_after(asked, "nl", sentence, notes=notes) is None
    assert find_problem_after(asked, "nl", sentence)


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "I'll reserve two for you."),
        ("en", "I will put two bottles aside for you."),
        ("en", "Two are set aside for you."),
        ("en", "I can hold a case for you until Saturday."),
        ("en", "I'll keep two bottles for you behind the counter."),
        ("en", "I've put one aside."),
        ("de", "Ich reserviere Ihnen zwei Flaschen."),
        ("de", "Ich lege Ihnen zwei Flaschen zurück."),
        ("de", "Gern lege ich zwei für Sie beiseite."),
        ("de", "Zwei Flaschen sind für dich zurückgelegt."),
        ("de", "Ich halte zwei Flaschen für Sie bereit."),
        ("fr", "Je vous en réserve deux."),
        ("fr", "Je vous mets deux bouteilles de côté."),
        ("fr", "Je t'en garde deux."),
        ("fr", "Deux bouteilles sont mises de côté pour vous."),
        ("es", "Le reservo dos botellas."),
        ("es", "Te guardo dos."),
        ("es", "Se las aparto hasta el sábado."),
        ("es", "Dos botellas quedan apartadas para usted."),
        ("it", "Le riservo due bottiglie."),
        ("it", "Gliene metto da parte due."),
        ("it", "Ti tengo due bottiglie da parte."),
        ("nl", "Ik reserveer er twee voor u."),
        ("nl", "Ik zet twee flessen voor u apart."),
        ("nl", "Ik leg er twee opzij."),
        ("pt", "Reservo-lhe duas garrafas."),
        ("pt", "Vou guardar duas para si."),
        ("pt", "Ponho duas garrafas de lado."),
    ],
)
def test_a_model_reserves_nothing_by_itself(language: str, sentence: str) -> None:
    assert all(find_problems(said(language, sentence)))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ja", "パーカー92点のワインです。"),
        ("de", "92 Punkte von Parker."),
        ("en", "Rated 92/100."),
        ("en", "Jancis Robinson puts it at 94."),
        ("de", "Falstaff gibt ihm 93."),
        ("es", "La Guía Peñín le da 94."),
        ("it", "Il Gambero Rosso gli assegna 91."),
        ("ko", "파커 92점을 받았습니다."),
        ("zh", "帕克给了92分。"),
        ("pl", "Parker dał mu 92."),
        ("ru", "Паркер дал ему 92."),
        ("en", "Suckling: 95."),
        ("fr", "Gault&Millau lui donne 90."),
    ],
)
def test_a_score_in_any_language_needs_a_source(language: str, sentence: str) -> None:
    assert all(find_problems(said(language, sentence)))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("pl", "Mamy 24 butelki."),
        ("ru", "У нас 24 бутылки."),
        ("ja", "在庫は24本です。"),
        ("sv", "Vi har 24 flaskor."),
        ("cs", "Máme 24 lahví."),
        ("zh", "我们有24瓶。"),
    ],
)
def test_a_count_of_bottles_in_a_language_without_a_table_needs_a_source(
    language: str, sentence: str
) -> None:
    assert all(find_problems(said(language, sentence)))


def test_a_count_of_bottles_that_a_source_has_passes_in_every_language() -> None:
    for sentence in ("Mamy 12 butelek.", "在庫は12本です。", "We have 12 bottles."):
        assert not any(find_problems(said("pl", sentence, wine="counted"))), sentence


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Set a glass aside for the sauce."),
        ("en", "It holds well for a decade."),
        ("en", "Keep it for two years."),
        ("en", "I'll keep it short: this is the one."),
        ("en", "Give it 90 minutes in a decanter."),
        ("en", "Decanter for 90 minutes and all is well."),
        ("de", "Legen Sie eine Flasche für Weihnachten zurück in den Keller."),
        ("de", "Ich halte ihn für die beste Wahl zum Lamm."),
        ("de", "Dekantieren Sie ihn 90 Minuten."),
        ("de", "Im Decanter 90 Minuten, dann ist er da."),
        ("fr", "Mettez un verre de côté pour la sauce."),
        ("fr", "Gardez-le deux ans."),
        ("fr", "C'est une cuvée de réserve."),
        ("es", "Guarde una copa para la salsa."),
        ("es", "Un reserva con mucho carácter."),
        ("es", "Guárdelo dos años."),
        ("it", "Tenga da parte un bicchiere per la salsa."),
        ("it", "Un vino riservato alle grandi occasioni."),
        ("nl", "Zet een glas apart voor de saus."),
        ("nl", "Leg hem twee jaar weg."),
        ("pt", "Guarde uma taça para o molho."),
        ("pt", "Reserve-o para uma grande ocasião."),
        ("en", "If you want a magnum, ask the shop."),
        ("en", "If you want it in magnum, that suits a table of eight."),
        ("de", "Wenn Sie eine Magnum möchten, frage ich nach."),
        ("es", "Si quiere un magnum, pregunte en la tienda."),
        ("ja", "90分ほどデキャンタしてください。"),
        ("ja", "60分間冷やしてください。"),
        ("zh", "醒酒90分钟。"),
        ("zh", "请醒酒90分鐘。"),
        ("pl", "Weź 2 butelki na sześć osób."),
        ("pl", "Podawaj w 16 stopniach, otwórz godzinę wcześniej."),
        ("ja", "2本あれば十分です。"),
        ("pl", "Karton 6 butelek wystarczy."),
        ("en", "A wine spectator sport, this is not."),
        ("en", "I'll put aside the reds then and look at whites."),
        ("de", "Ich lege die Roten beiseite und schaue nach Weißen."),
        ("es", "Lo guardo para el final: es el mejor."),
        ("it", "Lo riservo per ultimo, è il migliore."),
        ("pt", "Guardo o melhor para o fim."),
        ("en", "Port is sweet because half the sugar is left."),
        ("en", "A bottle left open for a week tastes of vinegar."),
        ("en", "Serve it at 16 degrees."),
        ("en", "May I suggest the Chinon?"),
    ],
)
def test_a_sentence_that_only_resembles_a_claim_passes(
    language: str, sentence: str
) -> None:
    assert not any(find_problems(said(language, sentence)))


def test_feedback_names_the_words_of_a_claim_and_what_to_write_instead() -> None:
    for sentence, words, advice in (
        ("I'll reserve two for you.", "I'll reserve", "[path]"),
        ("Lovely, and it contains no egg.", "contains no egg", "you do not know"),
        ("It is safe for your allergy.", "safe for your allergy", "read the label"),
        ("It is certified organic.", "certified", "you do not know"),
        ("Mamy 24 butelki.", "24 butelki", "`bottles`"),
    ):
        for problem in find_problems(said("en", sentence)):
            assert f'leave out "{words}"' in problem
            assert advice in problem


def test_a_remembered_allergy_counts_as_one_that_was_named() -> None:
    def is_stopped(sentence: str, allergies: set[str]) -> bool:
        answer = SommelierResponse(response_type="informational", intro=sentence)
        sources: dict[str, Source] = {"allergies": RememberedAllergies(allergies)}
        with use_language("en"):
            problem = grounding_problem(answer, Evidence(sources, ["a white for fish"]))
        return problem is not None

    reassurance = "Milk is never used here, so serve it without worry."
    assert is_stopped(reassurance, {Allergen.MILK})
    assert not is_stopped(reassurance, set())
    assert not is_stopped("With fish it is no problem at all.", {Allergen.MILK})


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "It is in stock, just ask."),
        ("en", "We have magnums available, just check with us."),
        ("en", "It is in stock and I am sure of it."),
        ("de", "Er ist auf Lager, fragen Sie einfach."),
        ("en", "We deliver tomorrow, please confirm your address."),
        ("es", "Está disponible en magnum, pregunte sin compromiso."),
    ],
)
def test_an_invitation_to_ask_does_not_excuse_a_claim_before_it(
    language: str, sentence: str
) -> None:
    assert all(find_problems(said(language, sentence, wine="gone")))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "I can't reserve two for you."),
        ("en", "I cannot hold bottles for you."),
        ("en", "We won't have magnums available."),
        ("en", "Nothing is reserved for you yet."),
        ("de", "Ich kann Ihnen nichts zurücklegen."),
        ("fr", "Je ne peux rien vous réserver."),
        ("es", "No puedo reservarle nada."),
        ("it", "Non posso mettere da parte niente."),
        ("nl", "Ik kan niets voor u apart leggen."),
        ("pt", "Não posso reservar nada."),
        ("en", "Ask the shop whether they can set two aside for you."),
        ("en", "The shop may be able to hold two for you."),
        ("en", "Check the label: I do not know whether it is vegan."),
        ("de", "Fragen Sie im Laden nach, ob eine Magnum verfügbar ist."),
        ("de", "Soll ich nachsehen, ob er auf Lager ist?"),
        ("fr", "Demandez à la boutique s'il existe en magnum."),
        ("fr", "Je vais chercher un vin qui est végan."),
        ("es", "Pregunte en la tienda si lo tienen en magnum."),
        ("it", "Chieda in negozio se è disponibile in magnum."),
        ("nl", "Vraag in de winkel of hij ook als magnum verkrijgbaar is."),
        ("pt", "Pergunte na loja se há magnum."),
        ("en", "I'll look for one that is certified vegan."),
        ("en", "To confirm that it is vegan, read the label."),
        ("de", "Lesen Sie auf dem Etikett, ob er vegan ist."),
        ("en", "Please read the label to be sure it contains no egg."),
        ("es", "Lea la etiqueta para saber que no contiene huevo."),
        ("fr", "Lisez l'étiquette pour vérifier qu'il ne contient pas d'œuf."),
        ("it", "Controlli l'etichetta per sapere se contiene uova."),
        ("en", "It's unknown whether a half bottle is available."),
        ("en", "Which of them is vegan, I cannot tell."),
        ("nl", "Lees het etiket om zeker te zijn dat er geen ei in zit."),
        ("pt", "Leia o rótulo para ter a certeza de que não contém ovo."),
        ("de", "Ich frage gern nach, ob wir liefern können."),
        ("en", "That it contains no egg is not known."),
        ("en", "Vegan wines are fined without egg."),
        ("en", "Whether we deliver, the shop can tell you."),
        ("de", "Vegane Weine enthalten kein Ei."),
    ],
)
def test_what_is_denied_unknown_or_to_be_asked_is_no_claim(
    language: str, sentence: str
) -> None:
    assert not any(find_problems(said(language, sentence)))


@pytest.mark.parametrize(
    ("language", "asked", "sentence"),
    [
        ("en", "I'm allergic to milk", "Champagne contains no milk."),
        ("pt", "Sou alérgico ao leite", "Os espumantes não contêm leite."),
        ("de", "Ich habe eine Milchallergie", "Champagner enthält keine Milch."),
    ],
)
def test_a_guest_with_an_allergy_is_told_nothing_general_about_its_allergen(
    language: str, asked: str, sentence: str
) -> None:
    answer = SommelierResponse(response_type="informational", intro=sentence)
    with use_language(language):
        assert grounding_problem(answer, Evidence({}, [asked]))
        assert grounding_problem(answer, Evidence({}, ["Hello"])) is None


@pytest.mark.parametrize("held_out", [False, True])
def test_no_true_answer_to_what_a_guest_asked_is_cut(held_out: bool) -> None:
    rows = [row for row in read("asked_true") if row["held_out"] is held_out]
    problems = {row["sentence"]: find_problem_of(row) for row in rows}
    assert {said: problem for said, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("held_out", [False, True])
def test_four_of_five_inventions_about_what_a_guest_asked_are_stopped(
    held_out: bool,
) -> None:
    rows = [row for row in read("asked_invented") if row["held_out"] is held_out]
    missed = [row["sentence"] for row in rows if not find_problem_of(row)]
    assert len(missed) <= len(rows) / 5, missed


def find_problem_of(row: dict[str, Any]) -> str | None:
    return find_problem_after(row["asked"], row["language"], row["sentence"])


@pytest.mark.parametrize(
    ("language", "asked", "sentence"),
    [
        ("en", "a wine for eggs Benedict", "Egg and tannin do not get along."),
        ("en", "something with milk chocolate", "Milk chocolate needs no heavy red."),
        ("de", "ein Wein zu Ei und Spinat", "Ei verträgt keine harten Tannine."),
        ("fr", "un vin avec un œuf cocotte", "L'œuf n'aime pas les tanins."),
    ],
)
def test_a_guest_who_eats_eggs_is_told_what_goes_with_them(
    language: str, asked: str, sentence: str
) -> None:
    assert find_problem_after(asked, language, sentence) is None


def test_a_remembered_note_counts_as_an_allergy_that_was_named() -> None:
    sentence = "Eiklar ist hier nie im Spiel."
    answer = SommelierResponse(response_type="informational", intro=sentence)
    notes = RememberedAllergies((), ["meine Frau: keine Eier"])
    with use_language("de"):
        assert grounding_problem(answer, Evidence({"notes": notes}, ["Zander?"]))
        assert grounding_problem(answer, Evidence({}, ["Zander?"])) is None


def test_no_space_stays_where_a_japanese_sentence_was_cut() -> None:
    kept = ("カシスと杉の香り。", "ステーキに合います。")
    text = f"{kept[0]}パーカー92点のワインです。{kept[1]}"
    answer = SommelierResponse(response_type="informational", intro=text)
    part = keep_valid(answer, Evidence(make_sources(said("ja", "")), ["?"]))
    assert part is not None
    assert part.answer.intro == "".join(kept)


@pytest.mark.parametrize(
    ("language", "asked", "sentence"),
    [
        ("en", "Do you deliver?", "It delivers plum and cherry from the first sip."),
        ("de", "Liefert ihr am Freitag?", "Er liefert viel Frucht für sein Geld."),
        ("nl", "Leveren jullie in Gent?", "Hij levert veel fruit voor zijn prijs."),
        ("pt", "Entregam no Porto?", "Entrega muita fruta pelo preço que tem."),
        ("en", "I'm allergic to egg", "This red does not suit fish."),
        ("en", "I'm allergic to egg", "It does not smell of sulphur at all."),
    ],
)
def test_what_a_wine_delivers_or_lacks_is_no_answer_to_the_question(
    language: str, asked: str, sentence: str
) -> None:
    assert find_problem_after(asked, language, sentence) is None


@pytest.mark.parametrize(
    "address", ["14 rue de la République", "Hauptstraße 5", "Rua das Flores, 27"]
)
def test_an_address_that_a_source_has_is_told(address: str) -> None:
    def find(text: str) -> str | None:
        document = replace(SUR_LIE, text=text)
        answer = SommelierResponse(
            response_type="informational", intro=f"Come to {address}, any time."
        )
        with use_language("en"):
            return grounding_problem(answer, Evidence({document.id: document}, ["?"]))

    assert find(f"Our cellar: {address}, by the river.") is None
    assert address in (find("We have a cellar.") or "")


def test_a_vintage_behind_the_name_of_a_vineyard_is_no_house() -> None:
    sentence = "Les vins de la Rue de Chaux 2020 sont fins."
    asked = "Que valent Chaux et la Rue, en 2020 ?"
    assert find_problem_after(asked, "fr", sentence) is None
