"""Names of one and the same grape, country or region; folded, the canonical one first.

Both the catalogue and what is asked for go through these, so any name finds every other.
Zinfandel and Primitivo stay apart: one grape, but nobody who asks for one expects the other.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Groups = tuple[tuple[str, ...], ...]

GRAPES: Final[Groups] = (
    ("syrah", "shiraz"),
    ("grenache", "garnacha", "garnacha tinta", "grenache noir", "cannonau"),
    ("mourvedre", "monastrell", "mataro"),
    ("carignan", "carinena", "mazuelo", "samso", "carignano"),
    ("cinsault", "cinsaut"),
    ("cabernet sauvignon", "cabernet"),
    ("malbec", "cot", "auxerrois noir"),
    ("pinot noir", "pinot nero", "spatburgunder", "blauburgunder"),
    ("pinot gris", "pinot grigio", "grauburgunder", "rulander"),
    ("pinot blanc", "pinot bianco", "weissburgunder"),
    ("pinot meunier", "meunier", "schwarzriesling"),
    ("sauvignon blanc", "sauvignon", "fume blanc"),
    ("chenin blanc", "chenin", "steen"),
    ("melon de bourgogne", "melon", "muscadet"),
    ("trebbiano", "ugni blanc", "trebbiano toscano"),
    ("vermentino", "rolle", "favorita", "pigato"),
    ("sangiovese", "sangiovese grosso", "brunello", "prugnolo gentile", "nielluccio"),
    ("nebbiolo", "spanna", "chiavennasca"),
    ("glera", "prosecco"),
    (
        "tempranillo",
        "tinto fino",
        "tinta del pais",
        "tinta de toro",
        "cencibel",
        "ull de llebre",
        "tinta roriz",
        "aragonez",
    ),
    ("macabeo", "macabeu", "viura"),
    ("albarino", "alvarinho"),
    ("mencia", "jaen"),
    ("palomino", "palomino fino", "listan blanco"),
    ("pedro ximenez", "px"),
    ("trincadeira", "tinta amarela"),
    ("fernao pires", "maria gomes"),
    ("touriga franca", "touriga francesa"),
    (
        "muscat",
        "moscato",
        "moscatel",
        "muscatel",
        "muscat blanc",
        "moscato bianco",
        "muscat blanc a petits grains",
        "gelber muskateller",
        "muskateller",
    ),
    ("blaufrankisch", "lemberger", "kekfrankos"),
    ("trollinger", "schiava", "vernatsch"),
    ("silvaner", "sylvaner"),
    ("muller thurgau", "rivaner"),
    ("sankt laurent", "st laurent"),
    ("pais", "mission", "listan prieto", "criolla chica"),
    ("ribolla gialla", "ribolla", "rebula"),
)

COUNTRIES: Final[Groups] = (
    ("united states", "united states of america", "usa", "us", "u s a", "u s", "america"),
    ("england", "united kingdom", "uk", "u k", "great britain", "britain"),
    ("south africa", "rsa"),
    ("new zealand", "nz", "aotearoa"),
    ("germany", "deutschland"),
    ("austria", "osterreich"),
    ("switzerland", "schweiz", "suisse", "svizzera"),
    ("italy", "italia"),
    ("spain", "espana"),
    ("brazil", "brasil"),
    ("greece", "hellas"),
    ("turkey", "turkiye"),
    ("czech republic", "czechia"),
    ("north macedonia", "macedonia"),
    ("russia", "russian federation"),
)

REGIONS: Final[Groups] = (
    ("burgundy", "bourgogne"),
    ("piedmont", "piemonte"),
    ("tuscany", "toscana"),
    ("sicily", "sicilia"),
    ("sardinia", "sardegna"),
    ("apulia", "puglia"),
    ("lombardy", "lombardia"),
    ("alto adige", "south tyrol", "sudtirol"),
    ("andalusia", "andalucia"),
    ("catalonia", "catalunya", "cataluna"),
    ("rhone", "rhone valley"),
    ("loire", "loire valley"),
    ("douro", "douro valley"),
    ("mosel", "mosel saar ruwer"),
    ("palatinate", "pfalz"),
    ("port", "porto"),
    ("sherry", "jerez", "jerez xeres sherry"),
    ("santorini", "thira"),
)


def canonical(groups: Groups) -> Mapping[str, str]:
    """From every name to its canonical one."""
    return MappingProxyType({name: group[0] for group in groups for name in group})


def alternatives(groups: Groups) -> Mapping[str, tuple[str, ...]]:
    """From every name to all names of the same thing."""
    return MappingProxyType({name: group for group in groups for name in group})
