"""What the house sommelier says, in Spanish."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": "¡Hola! Dígame un plato, un color o un precio y le busco una botella.",
    "thanks": "Con mucho gusto. Aquí estoy cuando necesite otra botella.",
    "help": (
        "Busco en la bodega por plato, color, uva, país o región, dulzor, cuerpo, "
        "precio y alérgenos. Por ejemplo: «un blanco seco y barato para salmón»."
    ),
    "ask": (
        "¿Qué le busco? Basta un color, un plato o un precio: «un tinto para cordero, "
        "no muy caro», por ejemplo."
    ),
    "knowledge": (
        "Ahora mismo solo puedo buscar en la bodega y prefiero no improvisar una "
        "respuesta. Dígame un plato, un color, una uva o un precio."
    ),
    "passage": "Esto es lo que dice mi biblioteca:",
    "off_topic": (
        "Eso queda fuera de mi bodega: yo solo entiendo de vino. Dígame qué hay en la "
        "mesa y le busco una botella."
    ),
    "rude": (
        "Siento no haberle ayudado. Dígame qué hay en la mesa, qué le gusta o cuánto quiere "
        "gastar, y busco otra vez."
    ),
    "error": (
        "Lo siento: ahora no he podido consultar la bodega. Vuelva a preguntarme en un momento."
    ),
    "nothing": "No he encontrado nada para: {criteria}.",
    "nothing_named": (
        "No he encontrado nada en la bodega para «{name}». Un color, un plato o un "
        "precio me ayuda más."
    ),
    "without": "Sin {limit} habría {count}",
    "and_without": "sin {limit}, {count}",
    "no_way": "Quitar un solo criterio no basta; pruebe otro color, otro plato u otro precio.",
    "found": "Su petición: {criteria}. Esto es lo que mejor encaja:",
    "found_any": "De la bodega, y dignos de abrirse:",
    "similar": "En un estilo parecido, la bodega tiene:",
    "details": "Esto es lo que sé.",
    "not_named": "No veo «{name}» en la bodega.",
    "all_shown": (
        "Ya ha visto todo lo que tengo para eso. ¿Cambiamos el color, el plato o el precio?"
    ),
    "gone": "Ya no encuentro ese vino en la bodega. Dígame qué le gustaba y busco otro.",
    "look_again": "Cámbielo y vuelvo a buscar.",
    "add_price": "Dígame un precio máximo y lo afino.",
    "add_food": "Dígame qué va a comer y elijo con más precisión.",
    "add_place": "Puedo limitarme a un país o a una uva, si tiene preferencia.",
    "add_taste": "También puedo buscar algo más barato, más ligero o con más cuerpo.",
    "suits": "va con {foods}",
    "contains": "Contiene: {allergens}.",
    "sold_out": "Ahora mismo no hay existencias.",
    "up_to": "hasta {price}",
    "around": "alrededor de {price}",
    "low_price": "a buen precio",
    "high_price": "a un precio más alto",
    "at_least": "desde {price}",
    "care_pregnant": (
        "Con un bebé en camino o de pecho no sirvo nada con alcohol. Estos vinos no lo tienen:"
    ),
    "care_minor": "A los menores de edad no les ofrezco alcohol. Estos vinos no lo tienen:",
    "care_driving": "A quien conduce no le sirvo alcohol. Estos vinos no lo tienen:",
    "care_health": "Entonces sin alcohol, por supuesto. Estos vinos no lo tienen:",
    "care_none": (
        "Prefiero no recomendar alcohol en este caso, y la bodega no tiene un vino sin "
        "alcohol que encaje. Un buen mosto, un té o una tónica también sirven para "
        "brindar."
    ),
    "cheapest": "No tengo nada más barato para eso. ¿Cambiamos el color, el plato o el origen?",
    "all_excluded": (
        "Todo lo que he encontrado para eso tiene algo que usted ha descartado. "
        "¿Cambiamos el color, el plato o el precio?"
    ),
    "leaving_out": "sin {names}",
    "unknown_currency": (
        "No sé convertir {currency}, así que no he tenido en cuenta el precio; dígame "
        "un límite en euros."
    ),
    "check_label": "La lista dice lo que es habitual: por los alérgenos, mire también la etiqueta.",
    "other_allergens": (
        "Mi lista solo conoce sulfitos, huevo, leche y pescado: para lo demás, mire la etiqueta."
    ),
    "fits_dish": "Sí, va bien con {foods}.",
    "fits_not": "Mi lista no lo nombra para {foods}; yo buscaría otro vino.",
    "acidity_high": "con acidez fresca",
    "tannin_high": "con taninos firmes",
    "tannin_low": "con taninos suaves",
    "from_grapes": "de {grapes}",
    "tasting_notes": "Nota de la bodega (solo en inglés): «{notes}»",
    "which": "No le he mostrado tantos. ¿A cuál se refiere, y qué debería cambiar?",
    "favourite": "De estos, yo abriría primero este:",
    "no_model": (
        "Aquí no hay ningún modelo de lenguaje configurado: respondo con reglas sencillas "
        "según la lista de la bodega."
    ),
    "model_down": (
        "Mi modelo de lenguaje no ayuda en este momento: esto viene directamente de la lista "
        "de la bodega."
    ),
    "declined": (
        "Prefiero no responder a eso. Pregúnteme por un vino, un plato o una ocasión, y estoy "
        "a su disposición."
    ),
    "failed": (
        "Lo siento: algo ha fallado por mi parte y no he podido responder. Vuelva a "
        "preguntarme en un momento."
    ),
    "holds": "Sí: la lista de la bodega indica {allergens}.",
    "holds_not": "La lista de la bodega no indica {allergens}; mire también la etiqueta.",
    "unknown_vegan": "La lista de la bodega no dice si es vegano.",
    "not_vegan": "No es vegano: la lista de la bodega indica {allergens}.",
    "is_alcohol": "Tiene {abv} % vol.",
    "is_price": "Cuesta unos {price}.",
    "is_grapes": "Uvas: {grapes}.",
    "is_organic": "Sí, la lista de la bodega lo da por ecológico.",
    "is_vintage": "La añada es {year}.",
    "is_no_vintage": "No lleva añada.",
    "is_origin": "Origen: {places}.",
    "is_so": "Es {trait}.",
    "unknown_organic": "La lista de la bodega no dice si es ecológico.",
    "unknown_alcohol": "La lista de la bodega no dice cuánto alcohol tiene.",
    "unknown_sweetness": "La lista de la bodega no dice si es seco o dulce.",
    "unknown_price": "La lista de la bodega no dice cuánto cuesta.",
    "unknown_grapes": "La lista de la bodega no indica sus uvas.",
    "unknown_body": "La lista de la bodega no dice si es ligero o con cuerpo.",
    "no_allergens": "La lista de la bodega no indica alérgenos; mire también la etiqueta.",
    "in_order_cheapest": "Primero lo más barato{criteria}:",
    "in_order_dearest": "Primero lo más caro{criteria}:",
    "library_closing": (
        "Mi biblioteca solo está en inglés. Si busca un vino, dígame un plato, un color, una "
        "uva o un precio, y le encuentro una botella en la bodega."
    ),
    "is_in_stock": "Hay existencias.",
}
