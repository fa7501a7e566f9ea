"""Words of wine knowledge in five languages and what the English library calls them. Pure.

A line is: the English words to search for, then the stems by which the other languages are
recognised; a stem ends where it stands, so `dekant` is "dekantieren" and "dekantiert".
"""

from functools import cache
from typing import Final

from agent.house_sommelier.lexicon import fold, tokens
from agent.house_sommelier.stopwords import stop_words

_GLOSSARY: Final = """
decant sediment: dekant karaff carafe decanter decantar decantare scaraff
cork taint TCA wet cardboard: kork bouchon corcho tappo kurk carton moisi kartonn karton muffig
serving temperature: temperatur
chill serving temperature: kuhl frais fredd koel enfria raffredd
opened bottle keeps: offen geoffnet angebrochen ouvert entame abierta abierto aperta geopend
store cellar storing: lager aufbewahr conserv guardar bewaren bewaar garde invecchia reifen vieillir
acidity: saure acidite acidez acidita zuur zuren
tannin: gerbstoff tanin tannin
yeast lees: hefe levure levadura lievit gist
oak barrel: fass eiche barrique fut chene barrica roble rovere botte vat eik
vintage: jahrgang millesime anada annata oogstjaar
sulphites: sulfit schwefel sulfiet soufre azufre solfit zwavel zolfo
sparkling traditional method second fermentation: schaumwein sekt mousseu effervescent espumos
sparkling traditional method: spumant flaschengarung mousserend cremant
biodynamic organic: biodynam biodinam biologi ecolog
residual sugar sweetness: restzucker restsuss sucre azucar zuccher restsuiker
fermentation: garung gisting fermenta
malolactic: malolak malolat
grape variety: rebsort cepage vitign druivenras
label origin designation: etikett etiquet etichett herkunft denominacion denominazione appellation
blend: verschnitt cuvee assemblage mezcla assemblaggio
noble rot botrytis: edelfaul pourriture podredumbre muffa edelrot
cork screwcap closure: drehverschluss schraubverschluss capsule rosca schroefdop
glass: glas verre copa bicchiere
soil terroir: boden sol suelo suolo bodem
fault smell: fehler defaut defecto difetto riech sent huele odora ruik
dry: trocken sec seco secco droog
flor fortified: sherry jerez xeres oloroso
port fortified: porto portwein portwijn
fortified: versterkt
headache histamine: kopfschmerz kopfweh mal dolor hoofdpijn
calories: kalorien calorie calorias
"""


_SHORT: Final = 3


@cache
def _entries() -> tuple[tuple[str, str], ...]:
    lines = (line.split(": ") for line in _GLOSSARY.strip().split("\n"))
    return tuple((known, english) for english, stems in lines for known in stems.split())


def in_english(text: str) -> str:
    """The telling words of `text`, and what they are called in English as far as that is known."""
    words = [fold(token.written) for token in tokens(text) if token.is_word]
    found = [
        english
        for word in words
        for known, english in _entries()
        if word == known or (len(known) > _SHORT and word.startswith(known))
    ]
    return " ".join(dict.fromkeys([*telling_words(text), *found])) or text


def telling_words(text: str) -> list[str]:
    """The words of a question that say what it is about."""
    return [
        token.written for token in tokens(text) if token.is_word and token.stem not in stop_words()
    ]
