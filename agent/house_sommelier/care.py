"""Guests who should not drink: pregnant or nursing, under age, driving, or for their health. Pure.

When in doubt, a guest is offered wine without alcohol: that can be put right, the other cannot.
"""

import re
from typing import Final, Literal

Care = Literal["care_pregnant", "care_minor", "care_driving", "care_health"]
"""Why somebody is offered nothing with alcohol; also the key of what is said about it."""

LASTING: Final[frozenset[Care]] = frozenset({"care_pregnant", "care_minor", "care_health"})
"""What still holds when the conversation has moved on; a drive is over one day."""

_FULL_AGE: Final = 18
_NOT: Final = "".join(
    rf"(?<!\b{word} )" for word in ("not", "nicht", "pas", "no", "non", "niet", "isn.t", "never")
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){_NOT}(?:{text})(?![^\W_])")


_PREGNANT: Final = _pattern(
    r"pregnan(?:t|cy)|expecting (?:a |our |my |her |their )?(?:baby|child|twins)|breast-?feeding"
    r"|nursing (?:mother|mum|mom|my baby)|(?:hoch)?schwangere?n?|schwangerschaft|ich stille"
    r"|stillende?[nrms]?|am stillen|enceinte|grossesse|allaite\w*|embaraz(?:ada|adas|o)|amamant\w+"
    r"|lactancia"
    r"|dando (?:el )?pecho|incinta|gravidanza|in dolce attesa|allatt\w+|zwangere?|zwangerschap"
    r"|(?:geef|geeft|geven) borstvoeding|borstvoeding"
)
_MINOR: Final = _pattern(
    r"under ?-?age|minor|teenagers?|for (?:my|the|our) (?:kids?|child(?:ren)?|teens?)"
    r"|not (?:yet )?(?:18|of age|an adult)|minderjahrig\w*|noch nicht (?:18|volljahrig|achtzehn)"
    r"|fur (?:meine|die|unsere|meinen?|den) (?:kinder|kindern|kind|teenager)"
    r"|mineure?s?|pas (?:encore )?(?:18 ans|majeure?)|menor(?:es)? de edad|no tengo 18"
    r"|minorenn[ei]|non (?:ho|ha) (?:ancora )?(?:18|diciotto)|nog geen (?:18|achttien)"
    r"|pour (?:mes|les|nos) enfants|para (?:mis|los|nuestros) (?:hijos|ninos)"
    r"|per (?:i miei|i nostri|i) (?:figli|bambini)|voor (?:mijn|de|onze) kinderen"
)
_AGE: Final = re.compile(
    r"(?<![^\W_])(?:i.?m|i am|he.?s|she.?s|i.?ll be"
    r"|(?:he|she|son|daughter|friend|brother|sister) is"
    r"|ich bin|ich werde|(?:er|sie|sohn|tochter) (?:ist|wird)"
    r"|j.?ai|(?:il|elle|fils|fille) a|tengo|(?:hijo|hija|el|ella) tiene|cumplo|ho"
    r"|(?:figlio|figlia|lui|lei) ha|compio"
    r"|ik ben|ik word|(?:hij|zij|ze|zoon|dochter) (?:is|wordt))"
    r" (?:just |only |nearly |almost |erst |gerade |seulement |solo |pas |nog maar |net |bijna |)"
    r"(?P<age>[0-9]{1,2})(?P<unit> ?-?(?:years?|yo|y/o|jahre?|ans|anos|anni|jaar)\b)?"
    r"(?P<end>(?: *(?:$|[.,;:!?)]| (?:and|but|so|und|aber|et|mais|y|pero|e|ma|en|maar|old|alt|oud"
    r"|today|heute|tomorrow|now)\b)))?"
)
_YEARS_OLD: Final = re.compile(
    r"(?<![0-9])(?P<age>[0-9]{1,2})[ -]?(?:years?[ -]?olds?|yo|y/o)\b (?:son|daughter|kids?"
    r"|boy|girl|child|brother|sister|niece|nephew|cousin|friend|student)"
    r"|my (?P<child>[0-9]{1,2})[ -]?(?:years?[ -]?old|yo)\b"
    r"|(?<![0-9])(?P<alter>[0-9]{1,2})[ -]?jahrige[rnms]?"
)
_AGE_IN_YEARS: Final = frozenset(
    "j'ai jai il elle fils fille tengo hijo hija el ella cumplo ho figlio figlia lui lei "
    "compio".split()
)
_DRIVING: Final = _pattern(
    r"i.?m driving|i am driving|(?:i|we|he|she)(?:.ll| will)? (?:have to|need to|must|ve got to"
    r"|has to|am going to|will) drive|got to drive|gotta drive|drive (?:home|back|later|afterwards"
    r"|after)|driving (?:home|back|later|tonight|afterwards|after|us|the car)|designated driver"
    r"|(?:i.?m|am) the driver|behind the wheel|bob vanavond|de bob"
    r"|(?:muss|musst|mussen)(?: \w+){0,4} fahren|fahrer(?:in)?|am steuer"
    r"|fahre(?: \w+){0,2} (?:auto|heim|nach hause|zuruck|selbst|motorrad)|hinters? steuer"
    r"|(?:je|j.|on|nous|il|elle) conduis|(?:dois|doit|devons|vais|va)(?: \w+){0,2} conduire|volant"
    r"|je conduis|capitaine de soiree|reprends? la route|reprendre la route"
    r"|(?:tengo que|debo|he de|tiene que|voy a|toca|tenemos que)(?: \w+){0,2} (?:conducir|manejar)"
    r"|conduzco|manejo (?:yo|luego|despues)|al volante|coger el coche"
    r"|(?:devo|dobbiamo|deve|dovro|tocca|debbo)(?: \w+){0,3} guidare|guido io|mi metto alla guida"
    r"|alla guida|guidare (?:dopo|piu tardi|poi)|guido (?:dopo|stasera|poi)"
    r"|(?:moet|moeten|ga|zal)(?: \w+){0,4} rijden|(?:ik|hij|zij) rijd(?:t)?|achter het stuur"
    r"|met de auto|rij(?: \w+){0,2} (?:naar huis|terug|nog)|mit dem auto|avec la voiture"
)
_HEALTH: Final = re.compile(
    r"recovering alcoholic|(?:do|does) not drink (?:any )?alcohol|(?:don|doesn).?t drink (?:any )?"
    r"alcohol|(?:do|does) not drink(?: at all| any ?more)?(?= *(?:[,.;!?]|$|and\b|so\b|but\b))"
    r"|(?:don|doesn).?t drink(?: at all| any ?more)?(?= *(?:[,.;!?]|$|and\b|so\b|but\b))"
    r"|(?:der|die|ich|er|sie) (?:gar )?(?:nicht|nichts) trink(?:t|e|en)(?= *(?:[,.;!?]|$))"
    r"|(?:qui|il|elle) ne boi[st] pas(?= *(?:[,.;!?]|$))|que no beben?(?= *(?:[,.;!?]|$))"
    r"|che non bevono?(?= *(?:[,.;!?]|$))|che non beve(?= *(?:[,.;!?]|$))"
    r"|die niet drinkt(?= *(?:[,.;!?]|$))|drinkt niet(?= *(?:[,.;!?]|$))"
    r"|(?:am|i.?m|is|stay|staying) sober|teetotal\w*|antibiotics?|on medication"
    r"|trockener? alkoholikerin?|keinen alkohol|antibiotik\w+"
    r"|(?:bois|boit|boire) pas d.?alcool|antibiotiques?|alcoolique"
    r"|no (?:bebo|bebe|puedo beber|puede beber|puedo tomar) alcohol|antibioticos?"
    r"|alcoholic[oa] en recuperacion"
    r"|non (?:bevo|beve|posso bere|puo bere) alcol|antibiotic[io]|astemi[oa]"
    r"|drink(?:t|en)? geen alcohol|mag geen alcohol|antibiotica"
)


def care_for(text: str) -> Care | None:
    """Why nothing with alcohol should be offered, from a folded text; None if nothing says so."""
    if _PREGNANT.search(text):
        return "care_pregnant"
    if _MINOR.search(text) or _tells_a_tender_age(text):
        return "care_minor"
    if _DRIVING.search(text):
        return "care_driving"
    return "care_health" if _HEALTH.search(text) else None


def _tells_a_tender_age(text: str) -> bool:
    if any(_is_tender(found[found.lastgroup or 0]) for found in _YEARS_OLD.finditer(text)):
        return True
    return any(_is_age(found) and _is_tender(found["age"]) for found in _AGE.finditer(text))


def _is_age(found: re.Match[str]) -> bool:
    """ "Ho 16 anni" is an age and "ho 16" an amount; "I'm 16." is an age too."""
    says_have = found[0].split(" ")[0] in _AGE_IN_YEARS
    return found["unit"] is not None or (found["end"] is not None and not says_have)


def _is_tender(age: str) -> bool:
    return 4 <= int(age) < _FULL_AGE
