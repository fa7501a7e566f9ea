"""What the house sommelier says, in Italian."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": "Buongiorno! Mi dica un piatto, un colore o un prezzo e le trovo una bottiglia.",
    "thanks": "Con piacere. Sono qui quando le serve un'altra bottiglia.",
    "help": (
        "Cerco in cantina per piatto, colore, vitigno, paese o regione, dolcezza, "
        "corpo, prezzo e allergeni. Per esempio: «un bianco secco ed economico per il "
        "salmone»."
    ),
    "ask": (
        "Che cosa cerco? Basta un colore, un piatto o un prezzo: «un rosso per "
        "l'agnello, non troppo caro», per esempio."
    ),
    "knowledge": (
        "Al momento posso solo cercare in cantina e preferisco non improvvisare una "
        "risposta. Mi dica un piatto, un colore, un vitigno o un prezzo."
    ),
    "passage": "Ecco che cosa dice la mia biblioteca:",
    "off_topic": (
        "Questo va oltre la mia cantina: m'intendo solo di vino. Mi dica che cosa c'è "
        "in tavola e le trovo una bottiglia."
    ),
    "rude": (
        "Mi dispiace di non esserle stato d'aiuto. Mi dica che cosa c'è in tavola, che cosa le "
        "piace o quanto vuole spendere, e cerco di nuovo."
    ),
    "error": (
        "Mi dispiace: non sono riuscito a guardare in cantina. Me lo richieda tra un momento."
    ),
    "nothing": "Non ho trovato nulla per: {criteria}.",
    "nothing_named": (
        "In cantina non ho trovato nulla per «{name}». Un colore, un piatto o un "
        "prezzo mi aiuta di più."
    ),
    "without": "Senza {limit} ce ne sarebbero {count}",
    "and_without": "senza {limit}, {count}",
    "no_way": "Togliere un solo criterio non basta; provi un altro colore, piatto o prezzo.",
    "found": "La sua richiesta: {criteria}. Ecco che cosa si adatta meglio:",
    "found_any": "Dalla cantina, da stappare:",
    "similar": "In uno stile simile, la cantina offre:",
    "details": "Ecco che cosa ne so.",
    "not_named": "Non vedo «{name}» in cantina.",
    "all_shown": "Ha visto tutto quello che ho. Cambiamo il colore, il piatto o il prezzo?",
    "gone": (
        "Non trovo più quel vino in cantina. Mi dica che cosa le piaceva e ne cerco un altro."
    ),
    "look_again": "Cambi questo e cerco di nuovo.",
    "add_price": "Mi dica un prezzo massimo e restringo la scelta.",
    "add_food": "Mi dica che cosa mangerà e sceglierò meglio.",
    "add_place": "Posso limitarmi a un paese o a un vitigno, se ha una preferenza.",
    "add_taste": "Posso anche cercare qualcosa di meno caro, più leggero o più corposo.",
    "suits": "si abbina a {foods}",
    "contains": "Contiene: {allergens}.",
    "sold_out": "Al momento non disponibile.",
    "up_to": "fino a {price}",
    "around": "intorno a {price}",
    "low_price": "a prezzo contenuto",
    "high_price": "a un prezzo più alto",
    "at_least": "da {price}",
    "care_pregnant": (
        "Con un bimbo in arrivo o da allattare non servo nulla di alcolico. Questi "
        "vini sono senza alcol:"
    ),
    "care_minor": "Ai minorenni non offro alcol. Questi vini ne sono senza:",
    "care_driving": "A chi guida non servo alcol. Questi vini ne sono senza:",
    "care_health": "Allora senza alcol, naturalmente. Ecco dei vini che non ne hanno:",
    "care_none": (
        "In questo caso preferisco non consigliare alcol, e la cantina non ha un vino "
        "analcolico adatto. Un buon succo d'uva, un tè o una tonica vanno bene anche "
        "per un brindisi."
    ),
    "cheapest": (
        "Non ho niente di meno caro per questo. Cambiamo il colore, il piatto o l'origine?"
    ),
    "all_excluded": (
        "Tutto quello che ho trovato ha qualcosa che lei ha escluso. Cambiamo il "
        "colore, il piatto o il prezzo?"
    ),
    "leaving_out": "senza {names}",
    "unknown_currency": (
        "Non so convertire {currency}, quindi il prezzo non è considerato; mi dica un "
        "limite in euro."
    ),
    "check_label": "La lista dice che cosa è abituale: per gli allergeni guardi anche l'etichetta.",
    "other_allergens": (
        "La mia lista conosce solo solfiti, uova, latte e pesce: per il resto guardi l'etichetta."
    ),
    "fits_dish": "Sì, si abbina a {foods}.",
    "fits_not": "La mia lista non lo indica per {foods}; cercherei un altro vino.",
    "acidity_high": "con un'acidità fresca",
    "tannin_high": "con tannini decisi",
    "tannin_low": "con tannini morbidi",
    "from_grapes": "da uve {grapes}",
    "tasting_notes": "Nota della cantina (solo in inglese): «{notes}»",
    "which": "Non gliene ho mostrati così tanti. Quale intende, e che cosa dovrebbe cambiare?",
    "favourite": "Tra questi aprirei per primo questo:",
    "no_model": (
        "Qui non è configurato alcun modello linguistico: rispondo con regole semplici dalla "
        "lista della cantina."
    ),
    "model_down": (
        "Il mio modello linguistico ora non è d'aiuto: questo viene direttamente dalla lista "
        "della cantina."
    ),
    "declined": (
        "A questo preferisco non rispondere. Mi chieda un vino, un piatto o un'occasione, e "
        "sono a sua disposizione."
    ),
    "failed": (
        "Mi dispiace: qualcosa è andato storto e non ho potuto rispondere. Me lo richieda tra "
        "un momento."
    ),
    "holds": "Sì: la lista della cantina indica {allergens}.",
    "holds_not": "La lista della cantina non indica {allergens}; guardi anche l'etichetta.",
    "unknown_vegan": "La lista della cantina non dice se è vegano.",
    "not_vegan": "Non è vegano: la lista della cantina indica {allergens}.",
    "is_alcohol": "Ha {abv} % vol.",
    "is_price": "Costa circa {price}.",
    "is_grapes": "Uve: {grapes}.",
    "is_organic": "Sì, la lista della cantina lo dà per biologico.",
    "is_vintage": "L'annata è {year}.",
    "is_no_vintage": "Non ha annata.",
    "is_origin": "Origine: {places}.",
    "is_so": "È {trait}.",
    "unknown_organic": "La lista della cantina non dice se è biologico.",
    "unknown_alcohol": "La lista della cantina non dice quanto alcol ha.",
    "unknown_sweetness": "La lista della cantina non dice se è secco o dolce.",
    "unknown_price": "La lista della cantina non dice quanto costa.",
    "unknown_grapes": "La lista della cantina non indica le uve.",
    "unknown_body": "La lista della cantina non dice se è leggero o corposo.",
    "no_allergens": "La lista della cantina non indica allergeni; guardi anche l'etichetta.",
    "in_order_cheapest": "Prima i più economici{criteria}:",
    "in_order_dearest": "Prima i più cari{criteria}:",
    "library_closing": (
        "La mia biblioteca è soltanto in inglese. Se cerca un vino, mi dica un piatto, un "
        "colore, un vitigno o un prezzo, e le trovo una bottiglia in cantina."
    ),
    "is_in_stock": "È disponibile.",
}
