"""Questions about wines that were shown: "is it vegan?", "which is the best?", "why?". Pure."""

import re
from collections.abc import Mapping
from typing import Final, Literal


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


_WHY_WORDS: Final = 5
_TRAIT_WORDS: Final = 10
_BARE_WORDS: Final = 3
_WHY: Final = _words(
    r"why|how come|warum|wieso|weshalb|pourquoi|por que|porque (?:este|ese)|perche|waarom"
)
_WHICH_IS_BEST: Final = _words(
    r"(?:which|what)(?: one| of (?:them|these|those))?(?: is|.s)? (?:the )?best"
    r"|which (?:one )?(?:would|do|should) (?:you|i)(?: \w+)?|your favou?rite"
    r"|welche[rnsm]? (?:davon |von (?:denen|diesen) )?(?:ist|war|ware) (?:am |der |die )?besten?"
    r"|welche[rn] (?:wurdest|wurden|nimmst|soll) (?:du|sie|ich)(?: \w+)?"
    r"|lequel (?:est|serait|prendr\w+|choisi\w+)(?: \w+)*|ton prefere|votre prefere"
    r"|cual (?:es|seria)(?: el| la)? mejor|cual (?:elijo|eliges|elegirias|me recomiendas)"
    r"|tu favorito|quale? (?:e|sarebbe)(?: il| la)? (?:migliore|meglio)"
    r"|quale (?:prendo|scelgo|sceglieresti)|je favoriet"
    r"|welke (?:is|zou)(?: de| het)?(?: je| u)? (?:beste?|kiezen|nemen|aanraden)"
)
_WHICH: Final = re.compile(
    r"^\W*(?:and |und |et |y |e |en )?(?:which(?: one)?(?: of (?:them|these|those))?(?: is|.s)\b"
    r"|welcher?s? (?:davon |von (?:denen|diesen) )?ist\b|(?:le|la)quel(?:le)? est\b|cual es\b"
    r"|qual e\b|quale e\b|welke (?:van (?:deze|die) )?is\b)"
    r"|\b(?:of (?:them|these|those)|davon|von (?:denen|diesen)|de ceux.ci|d.entre eux"
    r"|de (?:estos|esos)|tra questi|di questi|van deze|van die)\b"
)
_IT: Final = _words(
    r"it|its|they|them|this|that|these|those|er|sie|der|die|den|dieser?|diesen|il|ils|elle"
    r"|celui\W?ci|ce|este|estos|ese|esos|tiene|lo|lleva|questo|questi|quello|ha|e|costa|hij|deze"
    r"|dit|dat|ze|zijn"
)
_PRICE_ITSELF: Final = _words(
    r"costs?|price|prix|preis\w*|precios?|prezz[oi]|prijs|kost\w*|coute\w*|cuestan?|costano?"
)
Trait = Literal[
    "vegan",
    "organic",
    "abv",
    "sulphites",
    "egg",
    "milk",
    "fish",
    "elsewhere",
    "allergens",
    "sweetness",
    "price",
    "grapes",
    "vintage",
    "origin",
    "bodies",
    "taste",
    "stock",
]
"""What can be asked about a wine."""

_CONTAINS: Final = _words(
    r"contain\w*|in it|made with|fined|free|\w+frei|enthalt\w*|drin|contien\w*|contenir|il y a"
    r"|contiene\w*|lleva\w*|tiene\w*|c.e|ci sono|ha|hanno|bevat\w*|zit\w*|\w+vrij|has|have|ist da"
    r"|sind da|sans|sin|senza|zonder|ohne|without|hay|est.ce qu.il y"
)
_HELD: Final[Mapping[Trait, re.Pattern[str]]] = {
    "egg": _words(
        r"eggs?|egg.whites?|albumin\w*|ei|eier|ei(?:weiss|klar)|eifrei|oeufs?|blancs? d.oeufs?"
        r"|huevos?|clara|uov[ao]|albume|eieren|eiwit|eivrij"
    ),
    "milk": _words(
        r"milk|dairy|lactose|casein\w*|milch|milcheiweiss|laktose\w*|lactosefrei|kasein|lait|leche"
        r"|lactosa|caseina|latte|lattosio|latticini|melk|lactosevrij|zuivel"
    ),
    "fish": _words(r"fish|isinglass|fisch|hausenblase|poissons?|pescado|pesce|vis|vislijm"),
    "elsewhere": _words(
        r"gluten\w*|glutine|nuts?|nusse|noix|nueces|frutos secos|noci|noten|histamin\w*|istamina"
        r"|soya?|soja|soia|wheat|weizen|ble|trigo|grano|tarwe|peanuts?|erdnusse|sesame?|sesamo"
    ),
}
_TRAITS: Final[Mapping[Trait, re.Pattern[str]]] = {
    "vegan": _words(r"vegan\w*|vegetalien\w*|veganistisch\w*|vegetarian"),
    "organic": _words(
        r"bio|biowein|biowijn|organic\w*|biolog\w*|ecolog\w*|okologisch\w*|biodynam\w*|biodinam\w*"
    ),
    "abv": _words(
        r"alcohol|alkohol\w*|alcool|alcol|alcolic[oa]|abv|prozente?|percent|percentage|strong|stark"
        r"|fort|fuerte|sterk|graduacion|gradi|grados|degres|how strong|strongest"
        r"|starkste[nrs]?|sterkste"
    ),
    "sulphites": _words(
        r"sulphites?|sulfit\w*|sulfiet\w*|solfiti|sulphur|sulfur|schwefel|soufre"
        r"|azufre|zolfo|zwavel"
    ),
    "allergens": _words(r"allerg[ei]n\w*|alergenos?|allergeni"),
    "sweetness": _words(
        r"dry|off.dry|trocken|halbtrocken|lieblich|sec|seche|seco|secco|droog|sweet|suss|sucre|doux"
        r"|moelleux|dulce|dolce|zoet|residual sugar|sugar|zucker|restzucker|azucar"
        r"|zuccher\w+|suiker|driest|sweetest|(?:trockenst|sussest)e[nrs]?|droogste|zoetste"
    ),
    "price": _words(
        r"costs?|price|prix|preis\w*|precios?|prezz[oi]|prijs|kost\w*|coute\w*|cuestan?|costano?"
        r"|vale|valen|how much|wie ?viel|combien|cuanto|quanto|hoeveel"
    ),
    "grapes": _words(
        r"grapes?|rebsorten?|trauben?|traubensorten?|cepages?|uvas?|uve|uvaggio|vitign[oi]|druif"
        r"|druiven|druivenras\w*|raisins?|made (?:of|from)|variet(?:y|ies)|variedad\w*"
    ),
    "vintage": _words(
        r"vintage|jahrgang|millesime|anada|annata|jaargang|how old|wie alt|quel age|what year"
        r"|which year|welches jahr|quelle annee|que ano|che anno|welk jaar|hoe oud|cuantos anos"
    ),
    "origin": _words(
        r"come from|comes from|(?<!made )from|kommt|kommen|"
        r"herkunft|stammt|woher|vient|viennent|viene|vengono"
        r"|provien\w+|proced\w+|komt|komen|vandaan|herkomst|origin\w*|d.ou|de donde|da dove|di dove"
        r"|where|which country|what country|welchem land|quel pays|que pais|che paese|welk land"
        r"|quelle region|que region|che regione|welke streek|welcher region|which region"
    ),
    "bodies": _words(
        r"full.bodied|heavy|light|medium.bodied|body|kraftig|schwer|leicht|vollmundig|korper|leger"
        r"|corse|puissant|ligero|con cuerpo|cuerpo|leggero|corposo|corpo|licht|zwaar|krachtig"
        r"|lightest|heaviest|fullest|(?:leichtest|schwerst|kraftigst)e[nrs]?|lichtste|zwaarste"
        r"|krachtigste|legere"
    ),
    "stock": _words(
        r"in stock|available|auf lager|vorratig|verfugbar|lieferbar|en stock|disponibles?"
        r"|disponibil[ei]|op voorraad|leverbaar"
    ),
    "taste": _words(r"tastes?|tasting|schmeck\w*|gout|sabor|sabe|sapore|smaakt?|aroma\w*|notes"),
}
_GOES_WITH: Final = _words(
    r"(?:(?:does|do|would|will|can|could) )?(?:it|this|that|they)(?: one| wine)? "
    r"(?:go|pair|suit|match|work|fit)\w*|passt (?:er|der|dieser|das|es|die)|passen die"
    r"|(?:il|elle|ca|celui\W?ci|ce vin) (?:va|irait|convient)|va.t.il"
    r"|(?:este|ese|esto|lo) (?:va|combina|pega|acompana)|va bien (?:este|ese|con)"
    r"|(?:questo|quello|lo) (?:va|sta|si abbina)|va bene con"
    r"|(?:past|gaat) (?:hij|deze|die|dit|dat)"
)


def asks_why(text: str) -> bool:
    """Whether a folded text asks for a reason."""
    return _WHY.search(text) is not None


def traits_asked(text: str) -> tuple[Trait, ...]:
    """What a folded text asks of a wine, in the order of the answer; "does it contain egg?"."""
    if asks_whether_it_goes(text) or len(text.split()) > _TRAIT_WORDS:
        return ()
    asked = [trait for trait, words in _TRAITS.items() if words.search(text)]
    held = [trait for trait, words in _HELD.items() if words.search(text)]
    found = [*asked, *(held if _CONTAINS.search(text) else ())]
    others = [trait for trait in found if trait != "price"]
    is_price = _PRICE_ITSELF.search(text) is not None
    return tuple(found if is_price else others or found)


def asks_about_it(text: str) -> bool:
    """Whether a folded text asks why, or for a trait of what was shown: "is it vegan?"."""
    if asks_why(text):
        return len(text.split()) <= _WHY_WORDS
    if not traits_asked(text):
        return False
    is_bare = "?" in text and len(text.split()) <= _BARE_WORDS
    return is_bare or asks_which(text) or _IT.search(text) is not None


def asks_whether_it_goes(text: str) -> bool:
    """Whether a folded text asks if "it" goes with something."""
    return _GOES_WITH.search(text) is not None


def asks_which(text: str) -> bool:
    """Whether a folded text asks which of those shown is so: "which one is the cheapest?"."""
    return len(text.split()) <= _TRAIT_WORDS and _WHICH.search(text) is not None


def asks_for_the_best(text: str) -> bool:
    """Whether a folded text asks which of those shown to take."""
    return _WHICH_IS_BEST.search(text) is not None
