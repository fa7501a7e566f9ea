"""What the house sommelier says, in Dutch."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": ("Hallo! Noem me een gerecht, een kleur of een prijs, en ik zoek er een fles bij."),
    "thanks": "Graag gedaan. Ik ben er als u weer een fles nodig hebt.",
    "help": (
        "Ik zoek voor u in de kelder: op gerecht, kleur, druif, land of streek, "
        "zoetheid, body, prijs en allergenen. Bijvoorbeeld: „een goedkope droge witte "
        "wijn bij zalm”, en daarna „iets goedkopers”."
    ),
    "ask": (
        "Wat mag ik voor u zoeken? Een kleur, een gerecht of een prijs is genoeg, "
        "bijvoorbeeld „een rode wijn bij lam, niet te duur”."
    ),
    "knowledge": (
        "Ik kan op dit moment alleen in de kelder zoeken en verzin daar liever geen "
        "antwoord op. Noem me een gerecht, een kleur, een druif of een prijs, en ik "
        "vind er flessen bij."
    ),
    "passage": "Dit staat erover in mijn bibliotheek:",
    "off_topic": (
        "Dat valt helaas buiten mijn kelder: ik heb alleen verstand van wijn. Vertel "
        "me wat er op tafel komt, en ik zoek er een fles bij."
    ),
    "rude": (
        "Het spijt me dat ik niet heb geholpen. Vertel me wat er op tafel komt, wat je lekker "
        "vindt of wat het mag kosten, en ik zoek opnieuw."
    ),
    "error": "Het spijt me: ik kon nu niet in de kelder kijken. Vraag het me zo nog eens.",
    "nothing": "Hiervoor heb ik niets gevonden: {criteria}.",
    "nothing_named": (
        "Ik heb in de kelder niets gevonden voor „{name}”. Met een kleur, een gerecht "
        "of een prijs kom ik verder."
    ),
    "without": "Zonder {limit} zouden het er {count} zijn",
    "and_without": "zonder {limit} {count}",
    "no_way": (
        "Eén wens minder helpt niet; probeer een andere kleur, een ander gerecht of "
        "een andere prijs."
    ),
    "found": "Gezocht: {criteria}. Dit past er het best bij:",
    "found_any": "Uit de kelder, en het openen waard:",
    "similar": "In dezelfde stijl heeft de kelder:",
    "details": "Dit is wat ik ervan weet.",
    "not_named": "Ik zie „{name}” niet in de kelder.",
    "all_shown": (
        "U hebt alles gezien wat ik daarvoor heb. Zullen we de kleur, het gerecht of "
        "de prijs veranderen?"
    ),
    "gone": (
        "Ik kan die wijn niet meer in de kelder vinden. Wat vond u er goed aan? Dan "
        "zoek ik een andere."
    ),
    "look_again": "Verander dat, en ik zoek opnieuw.",
    "add_price": "Noem me een hoogste prijs, en ik zoek gerichter.",
    "add_food": "Vertel me wat u eet, en ik kies preciezer.",
    "add_place": "Ik kan het ook bij één land of één druif houden, als u een voorkeur hebt.",
    "add_taste": "Ik kan ook iets zoeken dat goedkoper, lichter of voller is.",
    "suits": "past bij {foods}",
    "contains": "Bevat: {allergens}.",
    "sold_out": "Op dit moment niet op voorraad.",
    "up_to": "tot {price}",
    "around": "rond de {price}",
    "low_price": "voor een lage prijs",
    "high_price": "voor een hogere prijs",
    "at_least": "vanaf {price}",
    "care_pregnant": (
        "Met een baby op komst of aan de borst schenk ik niets met alcohol. Deze "
        "wijnen zijn zonder:"
    ),
    "care_minor": (
        "Wie nog geen achttien is, krijgt van mij geen alcohol. Deze wijnen zijn zonder:"
    ),
    "care_driving": "Wie rijdt, krijgt van mij geen alcohol. Deze wijnen zijn zonder:",
    "care_health": "Dan natuurlijk zonder alcohol. Dit zijn zulke wijnen:",
    "care_none": (
        "Alcohol raad ik hier liever niet aan, en de kelder heeft geen passende "
        "alcoholvrije wijn. Met een goed druivensap, een thee of een tonic kunt u ook "
        "mooi klinken."
    ),
    "cheapest": (
        "Iets goedkopers heb ik daar niet voor. Zullen we de kleur, het gerecht of de "
        "herkomst veranderen?"
    ),
    "all_excluded": (
        "Alles wat ik daarvoor vond, heeft iets dat u hebt uitgesloten. Zullen we de "
        "kleur, het gerecht of de prijs veranderen?"
    ),
    "leaving_out": "zonder {names}",
    "unknown_currency": (
        "{currency} kan ik niet omrekenen, dus met de prijs is geen rekening gehouden; "
        "noem me een grens in euro's."
    ),
    "check_label": (
        "De lijst gaat uit van wat gebruikelijk is: kijk voor allergenen ook op het etiket."
    ),
    "other_allergens": (
        "Mijn lijst kent alleen sulfiet, ei, melk en vis: kijk voor al het andere op het etiket."
    ),
    "fits_dish": "Ja, hij past bij {foods}.",
    "fits_not": "Mijn lijst noemt hem niet bij {foods}; ik zou daar een andere wijn bij zoeken.",
    "acidity_high": "met frisse zuren",
    "tannin_high": "met stevige tannines",
    "tannin_low": "met zachte tannines",
    "from_grapes": "van {grapes}",
    "tasting_notes": "Notitie uit de kelder (alleen in het Engels): „{notes}”",
    "which": "Zoveel heb ik er niet laten zien. Welke bedoelt u, en wat moet er anders?",
    "favourite": "Van deze zou ik deze het eerst openen:",
    "no_model": (
        "Hier is geen taalmodel ingesteld; ik antwoord volgens eenvoudige regels uit de "
        "kelderlijst."
    ),
    "model_down": "Mijn taalmodel helpt nu niet; dit komt rechtstreeks uit de kelderlijst.",
    "declined": (
        "Daar geef ik liever geen antwoord op. Vraag me naar een wijn, een gerecht of een "
        "gelegenheid, en ik help u graag."
    ),
    "failed": (
        "Het spijt me: er ging bij mij iets mis en ik kon niet antwoorden. Vraag het me zo "
        "nog eens."
    ),
    "holds": "Ja: de kelderlijst noemt {allergens}.",
    "holds_not": "De kelderlijst noemt dit niet: {allergens}; kijk ook op het etiket.",
    "unknown_vegan": "De kelderlijst zegt niet of hij veganistisch is.",
    "not_vegan": "Hij is niet veganistisch: de kelderlijst noemt {allergens}.",
    "is_alcohol": "Hij heeft {abv} % vol.",
    "is_price": "Hij kost ongeveer {price}.",
    "is_grapes": "Druiven: {grapes}.",
    "is_organic": "Ja, de kelderlijst noemt hem biologisch.",
    "is_vintage": "Het oogstjaar is {year}.",
    "is_no_vintage": "Hij heeft geen oogstjaar.",
    "is_origin": "Herkomst: {places}.",
    "is_so": "Hij is {trait}.",
    "unknown_organic": "De kelderlijst zegt niet of hij biologisch is.",
    "unknown_alcohol": "De kelderlijst zegt niet hoeveel alcohol hij heeft.",
    "unknown_sweetness": "De kelderlijst zegt niet hoe droog of zoet hij is.",
    "unknown_price": "De kelderlijst zegt niet wat hij kost.",
    "unknown_grapes": "De kelderlijst noemt de druiven niet.",
    "unknown_body": "De kelderlijst zegt niet hoe licht of krachtig hij is.",
    "no_allergens": "De kelderlijst noemt geen allergenen; kijk ook op het etiket.",
    "in_order_cheapest": "De goedkoopste eerst{criteria}:",
    "in_order_dearest": "De duurste eerst{criteria}:",
    "library_closing": (
        "Mijn bibliotheek is er alleen in het Engels. Zoekt u een wijn, noem me dan een "
        "gerecht, een kleur, een druif of een prijs, en ik vind er een fles bij."
    ),
    "is_in_stock": "Hij is op voorraad.",
}
