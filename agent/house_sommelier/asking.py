"""Questions about wines that were shown: "is it vegan?", "which is the best?", "why?". Pure."""

import re
from typing import Final


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


_WHY_WORDS: Final = 5
_TRAIT_WORDS: Final = 9
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
_IT: Final = _words(
    r"it|its|they|them|this|that|these|those|er|sie|der|die|den|dieser?|diesen|il|ils|elle"
    r"|celui\W?ci|ce|este|estos|ese|esos|tiene|lo|lleva|questo|questi|quello|ha|e|costa|hij|deze"
    r"|dit|dat|ze|zijn"
)
_TRAIT: Final = _words(
    r"costs?|price|prix|preis\w*|precios?|prezz[oi]|prijs|kost\w*|coute\w*|cuestan?|costano?"
    r"|vale|valen|alcohol|alkohol|alcool|alcol|abv|strong|stark|fort|fuerte|forte|sterk"
    r"|vegan\w*|bio|organic|biolog\w*|ecolog\w*|biodynam\w*|biodinam\w*|sulphites?|sulfit\w*"
    r"|solfiti|allergens?|allergene?n?|alergenos|allergeni|grapes?|rebsorten?|trauben?|cepages?"
    r"|uvas?|uve|vitign[oi]|druif|druiven|vintage|jahrgang|millesime|anada|annata|jaargang"
    r"|how old|taste|schmeck\w*|gout|sabor|sabe|sapore|smaakt?|dry|trocken|sec|seco|secco|droog"
    r"|sweet|suss|come from|made (?:of|from)|kommt|herkunft|vient|viene|komt|from"
)
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


def asks_about_it(text: str) -> bool:
    """Whether a folded text asks why, or for a trait of what was shown: "is it vegan?"."""
    if asks_why(text):
        return len(text.split()) <= _WHY_WORDS
    is_short = len(text.split()) <= _TRAIT_WORDS
    return is_short and bool(_IT.search(text) and _TRAIT.search(text))


def asks_whether_it_goes(text: str) -> bool:
    """Whether a folded text asks if "it" goes with something."""
    return _GOES_WITH.search(text) is not None


def asks_for_the_best(text: str) -> bool:
    """Whether a folded text asks which of those shown to take."""
    return _WHICH_IS_BEST.search(text) is not None
