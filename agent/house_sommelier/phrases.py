"""What the house sommelier says, in five languages, filled in by `answer`.

No amounts of money here: a price in an answer must come from the person or the catalogue.
"""

from collections.abc import Mapping
from typing import Final, Literal

from agent.house_sommelier.lexicon import Language

PhraseKey = Literal[
    "hello", "thanks", "help", "ask", "knowledge", "off_topic", "error", "nothing",
    "nothing_named", "without", "and_without", "no_way", "found", "found_any", "similar", "details",
    "not_named", "all_shown", "gone", "suits", "contains", "sold_out", "add_price", "add_food",
    "add_place", "add_taste", "up_to", "at_least", "around", "low_price", "high_price",
    "look_again", "passage",
]  # fmt: skip

PHRASES: Final[Mapping[PhraseKey, Mapping[Language, str]]] = {
    "hello": {
        "en": "Hello! Tell me a dish, a colour or a price, and I find a bottle for you.",
        "de": "Hallo! Nennen Sie mir ein Gericht, eine Farbe oder einen Preis, und ich suche eine "
        "Flasche aus.",
        "fr": "Bonjour ! Dites-moi un plat, une couleur ou un prix, et je vous trouve une "
        "bouteille.",
        "es": "¡Hola! Dígame un plato, un color o un precio y le busco una botella.",
        "it": "Buongiorno! Mi dica un piatto, un colore o un prezzo e le trovo una bottiglia.",
    },
    "thanks": {
        "en": "With pleasure. I am here whenever you need another bottle.",
        "de": "Sehr gern. Ich bin da, wenn Sie wieder eine Flasche brauchen.",
        "fr": "Avec plaisir. Je suis là dès qu'il vous faut une autre bouteille.",
        "es": "Con mucho gusto. Aquí estoy cuando necesite otra botella.",
        "it": "Con piacere. Sono qui quando le serve un'altra bottiglia.",
    },
    "help": {
        "en": "I search the cellar for you: by dish, colour, grape, country or region, sweetness, "
        "body, price and allergens. Try “an inexpensive dry white for salmon”, and then “something "
        "cheaper” or “more like the second one”.",
        "de": "Ich suche im Keller nach Gericht, Farbe, Rebsorte, Land oder Region, Süße, Körper, "
        "Preis und Allergenen. Zum Beispiel: „ein günstiger, trockener Weißwein zu Lachs“.",
        "fr": "Je cherche dans la cave par plat, couleur, cépage, pays ou région, douceur, corps, "
        "prix et allergènes. Par exemple : « un blanc sec et pas cher pour du saumon ».",
        "es": "Busco en la bodega por plato, color, uva, país o región, dulzor, cuerpo, precio y "
        "alérgenos. Por ejemplo: «un blanco seco y barato para salmón».",
        "it": "Cerco in cantina per piatto, colore, vitigno, paese o regione, dolcezza, corpo, "
        "prezzo e allergeni. Per esempio: «un bianco secco ed economico per il salmone».",
    },
    "ask": {
        "en": "What may I look for? A colour, a dish or a price is enough: “a red for lamb, not "
        "too expensive”, say.",
        "de": "Wonach darf ich suchen? Eine Farbe, ein Gericht oder ein Preis genügt, etwa „ein "
        "Rotwein zu Lamm, nicht zu teuer“.",
        "fr": "Que puis-je chercher ? Une couleur, un plat ou un prix suffit : « un rouge pour de "
        "l'agneau, pas trop cher », par exemple.",
        "es": "¿Qué le busco? Basta un color, un plato o un precio: «un tinto para cordero, no muy "
        "caro», por ejemplo.",
        "it": "Che cosa cerco? Basta un colore, un piatto o un prezzo: «un rosso per l'agnello, "
        "non "
        "troppo caro», per esempio.",
    },
    "knowledge": {
        "en": "I can only search the cellar right now, so I would rather not improvise an answer "
        "to that. Name a dish, a colour, a grape or a price, and I find you bottles.",
        "de": "Ich kann im Moment nur im Keller suchen und möchte darauf keine Antwort erfinden. "
        "Nennen Sie ein Gericht, eine Farbe, eine Rebsorte oder einen Preis, und ich finde Weine.",
        "fr": "Pour l'instant je ne peux que chercher dans la cave, et je préfère ne pas "
        "improviser "
        "une réponse. Donnez-moi un plat, une couleur, un cépage ou un prix.",
        "es": "Ahora mismo solo puedo buscar en la bodega y prefiero no improvisar una respuesta. "
        "Dígame un plato, un color, una uva o un precio.",
        "it": "Al momento posso solo cercare in cantina e preferisco non improvvisare una "
        "risposta. "
        "Mi dica un piatto, un colore, un vitigno o un prezzo.",
    },
    "passage": {
        "en": "This is what my library has:",
        "de": "Das steht dazu in meiner Bibliothek:",
        "fr": "Voici ce qu'en dit ma bibliothèque :",
        "es": "Esto es lo que dice mi biblioteca:",
        "it": "Ecco che cosa dice la mia biblioteca:",
    },
    "off_topic": {
        "en": "That is beyond my cellar, I am afraid: I only know my way around wine. Tell me what "
        "is on the table, and I find a bottle for it.",
        "de": "Das liegt leider außerhalb meines Kellers: Ich kenne mich nur mit Wein aus. "
        "Verraten "
        "Sie mir, was es zu essen gibt, und ich finde eine Flasche dazu.",
        "fr": "Cela dépasse ma cave, hélas : je ne m'y connais qu'en vin. Dites-moi ce qu'il y a à "
        "table, et je trouve la bouteille.",
        "es": "Eso queda fuera de mi bodega: yo solo entiendo de vino. Dígame qué hay en la mesa y "
        "le busco una botella.",
        "it": "Questo va oltre la mia cantina: m'intendo solo di vino. Mi dica che cosa c'è in "
        "tavola e le trovo una bottiglia.",
    },
    "error": {
        "en": "I am sorry: I could not look into the cellar just now. Please ask me again in a "
        "moment.",
        "de": "Es tut mir leid: Ich konnte gerade nicht in den Keller schauen. Bitte fragen Sie "
        "gleich noch einmal.",
        "fr": "Je suis désolé : je n'ai pas pu consulter la cave. Redemandez-moi dans un instant.",
        "es": "Lo siento: ahora no he podido consultar la bodega. Vuelva a preguntarme en un "
        "momento.",
        "it": "Mi dispiace: non sono riuscito a guardare in cantina. Me lo richieda tra un "
        "momento.",
    },
    "nothing": {
        "en": "I found no {criteria}.",
        "de": "Dazu habe ich nichts gefunden: {criteria}.",
        "fr": "Je n'ai rien trouvé pour : {criteria}.",
        "es": "No he encontrado nada para: {criteria}.",
        "it": "Non ho trovato nulla per: {criteria}.",
    },
    "nothing_named": {
        "en": "I found nothing in the cellar for “{name}”. A colour, a dish or a price helps me "
        "more.",
        "de": "Zu „{name}“ habe ich im Keller nichts gefunden. Eine Farbe, ein Gericht oder ein "
        "Preis hilft mir weiter.",
        "fr": "Je n'ai rien trouvé dans la cave pour « {name} ». Une couleur, un plat ou un prix "
        "m'aiderait davantage.",
        "es": "No he encontrado nada en la bodega para «{name}». Un color, un plato o un precio me "
        "ayuda más.",
        "it": "In cantina non ho trovato nulla per «{name}». Un colore, un piatto o un prezzo mi "
        "aiuta di più.",
    },
    "without": {
        "en": "Without {limit} there {are} {count}",
        "de": "Ohne {limit} wären es {count}",
        "fr": "Sans {limit}, il y en aurait {count}",
        "es": "Sin {limit} habría {count}",
        "it": "Senza {limit} ce ne sarebbero {count}",
    },
    "and_without": {
        "en": "without {limit}, {count}",
        "de": "ohne {limit} {count}",
        "fr": "sans {limit}, {count}",
        "es": "sin {limit}, {count}",
        "it": "senza {limit}, {count}",
    },
    "no_way": {
        "en": "Giving up a single wish does not help; try another colour, dish or price.",
        "de": "Ein einzelner Wunsch weniger hilft nicht; versuchen Sie eine andere Farbe, ein "
        "anderes Gericht oder einen anderen Preis.",
        "fr": "Renoncer à un seul critère ne suffit pas ; essayez une autre couleur, un autre plat "
        "ou un autre prix.",
        "es": "Quitar un solo criterio no basta; pruebe otro color, otro plato u otro precio.",
        "it": "Togliere un solo criterio non basta; provi un altro colore, piatto o prezzo.",
    },
    "found": {
        "en": "I looked for {criteria}; {these} best.",
        "de": "Gesucht: {criteria}. Das passt am besten:",
        "fr": "Votre demande : {criteria}. Voici ce qui convient le mieux :",
        "es": "Su petición: {criteria}. Esto es lo que mejor encaja:",
        "it": "La sua richiesta: {criteria}. Ecco che cosa si adatta meglio:",
    },
    "found_any": {
        "en": "Worth opening from the cellar:",
        "de": "Aus dem Keller, und eine Flasche wert:",
        "fr": "Dans la cave, à déboucher sans hésiter :",
        "es": "De la bodega, y dignos de abrirse:",
        "it": "Dalla cantina, da stappare:",
    },
    "similar": {
        "en": "In a similar vein, the cellar has:",
        "de": "Ähnlich, und im Keller vorhanden:",
        "fr": "Dans le même esprit, la cave propose :",
        "es": "En un estilo parecido, la bodega tiene:",
        "it": "In uno stile simile, la cantina offre:",
    },
    "details": {
        "en": "Here is what I know.",
        "de": "Das weiß ich.",
        "fr": "Voici ce que j'en sais.",
        "es": "Esto es lo que sé.",
        "it": "Ecco che cosa ne so.",
    },
    "not_named": {
        "en": "I do not see “{name}” in the cellar.",
        "de": "„{name}“ sehe ich nicht im Keller.",
        "fr": "Je ne vois pas « {name} » dans la cave.",
        "es": "No veo «{name}» en la bodega.",
        "it": "Non vedo «{name}» in cantina.",
    },
    "all_shown": {
        "en": "You have seen all I have for that. Shall we change the colour, the dish or the "
        "price?",
        "de": "Mehr habe ich dazu nicht. Ändern wir die Farbe, das Gericht oder den Preis?",
        "fr": "Vous avez tout vu pour cela. Changeons-nous la couleur, le plat ou le prix ?",
        "es": "Ya ha visto todo lo que tengo para eso. ¿Cambiamos el color, el plato o el precio?",
        "it": "Ha visto tutto quello che ho. Cambiamo il colore, il piatto o il prezzo?",
    },
    "gone": {
        "en": "I cannot find that wine in the cellar any more. Tell me what you liked about it, "
        "and "
        "I look for another.",
        "de": "Diesen Wein finde ich im Keller nicht mehr. Was hat Ihnen daran gefallen? Dann "
        "suche "
        "ich einen anderen.",
        "fr": "Je ne trouve plus ce vin dans la cave. Dites-moi ce qui vous plaisait, et j'en "
        "cherche "
        "un autre.",
        "es": "Ya no encuentro ese vino en la bodega. Dígame qué le gustaba y busco otro.",
        "it": "Non trovo più quel vino in cantina. Mi dica che cosa le piaceva e ne cerco un "
        "altro.",
    },
    "look_again": {
        "en": "Change that, and I look again.",
        "de": "Ändern Sie das, und ich suche noch einmal.",
        "fr": "Changez cela, et je cherche à nouveau.",
        "es": "Cámbielo y vuelvo a buscar.",
        "it": "Cambi questo e cerco di nuovo.",
    },
    "add_price": {
        "en": "Tell me a price limit, and I narrow it down.",
        "de": "Nennen Sie mir eine Preisgrenze, und ich grenze es ein.",
        "fr": "Donnez-moi un prix maximum, et j'affine.",
        "es": "Dígame un precio máximo y lo afino.",
        "it": "Mi dica un prezzo massimo e restringo la scelta.",
    },
    "add_food": {
        "en": "Tell me what you will eat, and I choose more precisely.",
        "de": "Verraten Sie mir, was es zu essen gibt, und ich wähle genauer.",
        "fr": "Dites-moi ce que vous mangerez, et je choisirai plus précisément.",
        "es": "Dígame qué va a comer y elijo con más precisión.",
        "it": "Mi dica che cosa mangerà e sceglierò meglio.",
    },
    "add_place": {
        "en": "I can narrow it to a country or a grape, if you have a favourite.",
        "de": "Ich kann es auf ein Land oder eine Rebsorte eingrenzen, wenn Sie mögen.",
        "fr": "Je peux me limiter à un pays ou à un cépage, si vous en avez un favori.",
        "es": "Puedo limitarme a un país o a una uva, si tiene preferencia.",
        "it": "Posso limitarmi a un paese o a un vitigno, se ha una preferenza.",
    },
    "add_taste": {
        "en": "I can also look for something cheaper, lighter or fuller.",
        "de": "Ich suche auch gern etwas Günstigeres, Leichteres oder Kräftigeres.",
        "fr": "Je peux aussi chercher moins cher, plus léger ou plus corsé.",
        "es": "También puedo buscar algo más barato, más ligero o con más cuerpo.",
        "it": "Posso anche cercare qualcosa di meno caro, più leggero o più corposo.",
    },
    "suits": {
        "en": "suits {foods}",
        "de": "passt zu: {foods}",
        "fr": "accords : {foods}",
        "es": "va con {foods}",
        "it": "si abbina a {foods}",
    },
    "contains": {
        "en": "Contains {allergens}.",
        "de": "Enthält: {allergens}.",
        "fr": "Contient : {allergens}.",
        "es": "Contiene: {allergens}.",
        "it": "Contiene: {allergens}.",
    },
    "sold_out": {
        "en": "Not in stock at the moment.",
        "de": "Zurzeit nicht auf Lager.",
        "fr": "Pas en stock pour le moment.",
        "es": "Ahora mismo no hay existencias.",
        "it": "Al momento non disponibile.",
    },
    "up_to": {
        "en": "up to {price}", "de": "bis {price}", "fr": "jusqu'à {price}",
        "es": "hasta {price}", "it": "fino a {price}",
    },
    "around": {
        "en": "around {price}", "de": "um {price}", "fr": "environ {price}",
        "es": "alrededor de {price}", "it": "intorno a {price}",
    },
    "low_price": {
        "en": "at a low price", "de": "zu niedrigem Preis", "fr": "à petit prix",
        "es": "a buen precio", "it": "a prezzo contenuto",
    },
    "high_price": {
        "en": "at a higher price", "de": "zu höherem Preis", "fr": "à un prix plus élevé",
        "es": "a un precio más alto", "it": "a un prezzo più alto",
    },
    "at_least": {
        "en": "at {price} or more", "de": "ab {price}", "fr": "à partir de {price}",
        "es": "desde {price}", "it": "da {price}",
    },
}  # fmt: skip


def say(key: PhraseKey, language: Language, **values: str) -> str:
    """One sentence, filled in."""
    return PHRASES[key][language].format(**values)
