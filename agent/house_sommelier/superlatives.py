"""The cheapest and the dearest, in six languages. Pure.

`SUPERLATIVES` is in the format of `agent.house_sommelier.lexicon`: `order` is what comes first.
"""

import re
from typing import Final

SUPERLATIVES: Final = """
order cheapest
  en cheapest, least expensive, less expensive of all, lowest price, lowest priced, most affordable
  en most inexpensive, least pricey, least costly
  de günstigste, günstigsten, günstigster, günstigstes, am günstigsten, billigste, billigsten
  de billigster, billigstes, am billigsten, preiswerteste, preiswertesten, preiswertester
  de preiswertestes, preisgünstigste, preisgünstigsten, preisgünstigster, niedrigsten Preis
  fr le moins cher, la moins chère, les moins chers, les moins chères, le plus abordable
  fr la plus abordable, le meilleur marché, le plus économique, le moins coûteux
  es el más barato, la más barata, los más baratos, las más baratas, lo más barato
  es el más económico, la más económica, los más económicos, el menos caro
  it il più economico, la più economica, i più economici, il meno caro, la meno cara, i meno cari
  it il meno costoso, la meno costosa
  nl goedkoopste, voordeligste, minst dure, laagste prijs
order dearest
  en most expensive, dearest, priciest, costliest, highest price, highest priced, most costly
  de teuerste, teuersten, teuerster, teuerstes, am teuersten, kostspieligste, kostspieligsten
  fr le plus cher, la plus chère, les plus chers, les plus chères, le plus coûteux
  es el más caro, la más cara, los más caros, las más caras, lo más caro, el más costoso
  it il più caro, la più cara, i più cari, le più care, il più costoso, il più pregiato
  nl duurste, kostbaarste
"""

_APART: Final = re.compile(
    r"(?i)\b(?P<article>el|la|los|las|lo|tu|su|vuestro|vuestra|il|i|le|tuo|vostro|vostra|suo)"
    r"(?P<between>(?: (?!más|mas|più|piu|meno|menos)[^\W\d_]+){1,3})"
    r" (?P<degree>m[áa]s|menos|pi[ùu]|meno)"
    r" (?P<price>(?:barat|car|econ[óo]mic|costos|pregiat)[aoi]s?)\b"
    r"(?! (?:que (?:el|la|los|las|lo|est[aeo]s?|es[aeo]s?)"
    r"|del (?:prim|second|terz)\w+|di quest\w+)\b)"
)


def together(text: str) -> str:
    """`text` with superlatives in one piece: "el tinto más caro" becomes "tinto el más caro"."""
    return _APART.sub(_in_one, text)


def _in_one(found: re.Match[str]) -> str:
    is_italian = found["degree"].casefold() in ("più", "piu", "meno")
    article = "il" if is_italian else "el"
    price = re.sub("(?:[aoi]|[ao]s)$", "o", found["price"].casefold())
    return f"{found['between'].strip()} {article} {found['degree']} {price}"
