"""The names of the limits that an empty search may be asked to give up, in six languages.

Allergens and whatever else was ruled out are not among them.
"""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.lexicon import Language

LIMITS: Final[Mapping[str, Mapping[Language, str]]] = {
    "price": {
        "en": "the price limit", "de": "die Preisgrenze", "fr": "la limite de prix",
        "es": "el límite de precio", "it": "il limite di prezzo",
        "nl": "de prijsgrens",
    },
    "foods": {
        "en": "the dish", "de": "das Gericht", "fr": "le plat", "es": "el plato", "it": "il piatto",
        "nl": "het gerecht",
    },
    "styles": {
        "en": "the style", "de": "den Weinstil", "fr": "le style", "es": "el estilo",
        "it": "lo stile",
        "nl": "de stijl",
    },
    "colours": {
        "en": "the colour", "de": "die Farbe", "fr": "la couleur", "es": "el color",
        "it": "il colore",
        "nl": "de kleur",
    },
    "sweetness": {
        "en": "the sweetness", "de": "die Süße", "fr": "la douceur", "es": "el dulzor",
        "it": "la dolcezza",
        "nl": "de zoetheid",
    },
    "bodies": {
        "en": "the body", "de": "den Körper", "fr": "le corps", "es": "el cuerpo", "it": "il corpo",
        "nl": "de body",
    },
    "grapes": {
        "en": "the grape", "de": "die Rebsorte", "fr": "le cépage", "es": "la uva",
        "it": "il vitigno",
        "nl": "de druif",
    },
    "countries": {
        "en": "the country", "de": "das Land", "fr": "le pays", "es": "el país", "it": "il paese",
        "nl": "het land",
    },
    "regions": {
        "en": "the region", "de": "die Region", "fr": "la région", "es": "la región",
        "it": "la regione",
        "nl": "de streek",
    },
    "min_abv": {
        "en": "the alcohol limit", "de": "die Alkoholgrenze", "fr": "la limite d'alcool",
        "es": "el límite de alcohol", "it": "il limite di alcol",
        "nl": "de alcoholgrens",
    },
    "max_abv": {
        "en": "the alcohol limit", "de": "die Alkoholgrenze", "fr": "la limite d'alcool",
        "es": "el límite de alcohol", "it": "il limite di alcol",
        "nl": "de alcoholgrens",
    },
    "in_stock_only": {
        "en": "asking for stock", "de": "die Bedingung „auf Lager“", "fr": "la condition de stock",
        "es": "exigir existencias", "it": "la disponibilità",
        "nl": "de voorwaarde „op voorraad”",
    },
}  # fmt: skip
