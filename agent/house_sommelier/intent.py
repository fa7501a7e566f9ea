"""What a request wants done: a tool called, or something said. Pure."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from agent.house_sommelier.followups import Request
from agent.house_sommelier.lexicon import fold

Saying = Literal["hello", "thanks", "help", "ask", "knowledge", "off_topic"]

SEARCH: Final = "search_wines"
SIMILAR: Final = "find_similar_wines"
DETAILS: Final = "get_wine"
LIBRARY: Final = "search_documents"

_MOST_SHOWN: Final = 3
_SIMILAR_LIMIT: Final = 5
_OTHERS_LIMIT: Final = 12
_MOST_NAME_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool to call, with its arguments."""

    tool: str
    arguments: dict[str, object]


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


_ORDINALS: Final = tuple(
    _words(
        rf"(?:{words}|(?:#|no\.?|nr\.?|number|nummer|numero) ?{number})"
        r"(?! (?:course|date|time|of|plate))"
    )
    for number, words in enumerate(
        (
            "first|1st|number one|erste[nrms]?|premiere?|primer[oa]?|prim[oa]",
            "second|2nd|number two|zweite[nrms]?|deuxieme|segund[oa]|second[oa]",
            "third|3rd|number three|dritte[nrms]?|troisieme|tercer[oa]?|terz[oa]",
            "fourth|4th|vierte[nrms]?|quatrieme|cuart[oa]|quart[oa]",
            "fifth|5th|funfte[nrms]?|cinquieme|quint[oa]",
            "sixth|6th|sechste[nrms]?|sixieme|sext[oa]|sest[oa]",
        ),
        start=1,
    )
)
_LAST: Final = _words(r"the last(?: one| wine)?|(?:der|den) letzten?|le dernier|el ultimo|l.ultimo")
_ALIKE: Final = _words(
    r"like (?:the|this|that|these|those|it)|similar|alike|ahnlich\w*|wie (?:der|den|die)"
    r"|comme (?:le|la)|semblable|parecid[oa]s?|como (?:el|la)|simil[ei]|come (?:il|la)"
)
_MORE_ABOUT: Final = _words(
    r"tell me more|more about|more info\w*|more details?|details?|mehr (?:uber|zu|dazu)"
    r"|en savoir plus|plus d.info\w*|mas (?:sobre|informacion|detalles)|dimmi di piu"
    r"|piu informazioni"
)
_OFF_TOPIC: Final = _words(
    r"python|java(?:script)?|code|program(?:ming)?|sql|script|weather|forecast|football|soccer"
    r"|politic\w*|president|election|bitcoin|crypto\w*|stock market|homework|maths?|equation"
    r"|translate|jokes?|poem|essay|capital of|movie|song|lyrics|news|hack\w*|system prompt"
    r"|jailbreak|nude\w*"
    r"|(?:ignore|forget|disregard) (?:all|your|the|any|previous)[\w ]*(?:instructions|rules|prompt)"
    r"|wetter|fussball|hauptstadt|gedicht|meteo|capitale|poeme|blague|el tiempo|futbol|poema|chiste"
    r"|calcio|barzelletta|poesia"
    r"|idiot\w*|stupid\w*|useless|junk|rubbish|moron|dumb"
    r"|fuck\w*|shit\w*|asshole|bitch|bastard|crap|shut up|you suck"
    r"|arschloch|scheiss\w*|blodmann|merde|connard|puta|mierda|gilipollas|stronz[oa]|cazzo"
    r"|vaffanculo"
)
_QUESTION: Final = re.compile(
    r"^(?:so |and |but |ok |okay |please |hi,? |hello,? )*(?:(?:can|could) you )?"
    r"(?:what|why|how|who|when|where|explain|define|describe|teach|is|are|does|was|did|tell me)\b"
    r"|\b(?:meaning of|definition of|difference between|explain|what does|what is|what are)\b"
    r"|^(?:was (?:ist|sind|bedeutet|heisst)|warum|wieso|wie (?:lange|macht|wird|kann|entsteht)"
    r"|erklar\w*|qu.?est.ce|c.?est quoi|pourquoi|comment|explique\w*|que (?:es|son|significa)"
    r"|por que|como|cos.? ?e|che cos|cosa (?:e|sono|significa)|che significa|perche|come"
    r"|spiega\w*)\b"
)
_CHOOSING: Final = _words(
    r"goes?|going|pairs?|pairing|match(?:es)?|suits?|fits?|recommend\w*|suggest\w*|have you"
    r"|you have|(?:you|have you) got|good|best|nice|great|buy|there|which|you sell|in stock"
    r"|what about"
    r"|how about|how much|should (?:i|we) (?:drink|buy|have|get|order|choose|serve with|bring)"
    r"|drink with"
    r"|can i (?:drink|buy|have|get)|what (?:kind of |sort of )?(?:wine|red|white|rose|sparkling)s?"
    r"|passt|empfiehl\w*|empfehl\w*|gibt es|va avec|conseill\w*|recommand\w*|recomien\w*|va con"
    r"|consigli\w*|que vino|quel vin|welche[rn]? wein|che vino"
)
_HELLO: Final = _words(
    r"hi|hello|hey|howdy|greetings|good (?:morning|evening|afternoon|day)|how are you|/start"
    r"|hallo|servus|moin|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|hola"
    r"|buen[oa]s (?:dias|tardes|noches)|ciao|buongiorno|buonasera|salve"
)
_THANKS: Final = _words(
    r"thanks?(?: you)?|thx|cheers|bye|goodbye|danke|tschuss|merci|au revoir|gracias|adios|grazie"
    r"|arrivederci"
)
_HELP: Final = _words(
    r"help|/help|what can you do|what do you do|who are you|what are you|how does this work|hilfe"
    r"|was kannst du|wer bist du|aide|que peux.tu faire|qui es.tu|ayuda|que puedes hacer|aiuto"
    r"|cosa sai fare|chi sei"
)
_SURPRISE: Final = _words(
    r"surprise me|anything|whatever|you choose|you decide|uberrasch\w*|surprends.moi|surprenez.moi"
    r"|sorprendeme|sorprendimi"
)


def decide(request: Request) -> Wish | Saying:
    """What to do about a request before any tool was called."""
    text = " ".join(fold(request.text).split())
    if wish := _about_shown(request, text):
        return wish
    facts = request.said.filters - {"text"}
    if _OFF_TOPIC.search(text) and (not facts or _QUESTION.search(text)):
        return "off_topic"
    if _HELP.search(text) and not facts:
        return "help"
    if _is_knowledge(request, text):
        return "knowledge"
    if facts or request.said.cues:
        return _search(request)
    return _without_filters(request, text)


def _about_shown(request: Request, text: str) -> Wish | None:
    """A wine that the person was shown and points at: more like it, or more about it."""
    if not request.shown:
        return None
    pointed = pointed_at(text, request.shown)
    if _ALIKE.search(text):
        wine_id = pointed or request.shown[0]
        return Wish(SIMILAR, {"wine_id": wine_id, "limit": _SIMILAR_LIMIT})
    if request.said.filters - {"text", "sweetness", "bodies"}:
        return None
    if pointed:
        return Wish(DETAILS, {"wine_ids": [pointed]})
    if _MORE_ABOUT.search(text) and not request.said.filters:
        return Wish(DETAILS, {"wine_ids": list(request.shown[:_MOST_SHOWN])})
    return None


def pointed_at(text: str, shown: tuple[str, ...]) -> str | None:
    """The id of the wine that "the second one" or "the last" means; `text` is folded."""
    for wine_id, ordinal in zip(shown, _ORDINALS, strict=False):
        if ordinal.search(text):
            return wine_id
    return shown[-1] if _LAST.search(text) else None


def _is_knowledge(request: Request, text: str) -> bool:
    said = request.said
    if not _QUESTION.search(text) or _CHOOSING.search(text):
        return False
    if said.cues or said.filters & {"min_price", "max_price"}:
        return False
    return not (text.startswith("tell me about") and said.name)


def _search(request: Request) -> Wish:
    arguments = request.query.model_dump(mode="json", exclude_defaults=True)
    if "other" in request.said.cues and request.shown:
        arguments["limit"] = _OTHERS_LIMIT
    return Wish(SEARCH, arguments)


def _without_filters(request: Request, text: str) -> Wish | Saying:
    for saying, pattern in (("hello", _HELLO), ("thanks", _THANKS)):
        if pattern.search(text):
            return "hello" if saying == "hello" else "thanks"
    if _SURPRISE.search(text):
        return Wish(SEARCH, {})
    if request.said.name and len(request.said.leftovers) <= _MOST_NAME_WORDS:
        return _search(request)
    return _search(request) if request.said.filters and not request.said.name else "ask"
