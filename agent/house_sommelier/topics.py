"""What a message is about when it is no wish for a wine: patterns over folded text, as data.

Everything here is matched against a text in lower case, without accents.
"""

import re
from typing import Final

from agent.house_sommelier.lexicon import tokens


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


_OFF_TOPIC_WORDS: Final = frozenset(
    """
    python java javascript code programming programmer sql script indentationerror html
    weather forecast football soccer basketball tennis politics politician president election
    minister bitcoin crypto homework math maths mathematics equation algebra physics
    translate translation joke poem essay movie film song lyrics news hack hacker jailbreak nude
    tax taxes visa passport insurance mortgage loan salary resume horoscope lottery laptop
    wetter wettervorhersage fussball bundesliga gedicht witz hausaufgabe hausaufgaben mathe
    mathematik gleichung steuererklarung steuer bewerbung lebenslauf politik bundeskanzler
    nachrichten programmieren programmiere ubersetze ubersetzen ubersetzung versicherung
    meteo blague poeme devoirs mathematique equation impot impots politique election actualites
    traduis traduire traduisez traduction programmer ordinateur candidature motivation chanson
    assurance
    futbol partido poema chiste deberes matematicas ecuacion impuestos impuesto politica elecciones
    noticias traduce traducir traduccion programar ordenador curriculum pelicula cancion
    calcio partita barzelletta poesia compiti matematica equazione dichiarazione politica
    elezioni notizie traduci tradurre traduzione programmare assicurazione canzone bolletta
    voetbal voetbalwedstrijd weerbericht mop grap gedicht huiswerk wiskunde belasting
    belastingaangifte aangifte politiek verkiezingen nieuws vertaal vertalen vertaling
    programmeren sollicitatiebrief sollicitatie verzekering hypotheek rekensom
    """.split()
)
_RUDE_WORDS: Final = frozenset(
    """
    idiot idiots stupid useless junk rubbish moron dumb fuck fucking shit asshole bitch bastard crap
    arschloch scheisse scheiss blodmann idioten nutzlos
    merde connard puta mierda gilipollas inutil
    stronzo stronza cazzo vaffanculo idiota inutile klootzak kut lul idioot waardeloos
    """.split()
)
_OFF_TOPIC: Final = _words(
    r"capital (?:of|de)|stock market|system ?prompt|systemprompt"
    r"|(?:ignore|forget|disregard) (?:all|your|the|any|previous)[\w ]*(?:instructions|rules|prompt)"
    r"|(?:ignorier\w*|vergiss|vergesst) (?:alle|deine|die|eure)?[\w ]*(?:anweisung\w*|regeln)"
    r"|(?:ignore[rz]?|oublie[rz]?) (?:toutes|tes|les|vos)?[\w ]*(?:instructions|consignes|regles)"
    r"|(?:ignora|olvida) (?:todas |tus |las )?[\w ]*(?:instrucciones|reglas|indicaciones)"
    r"|(?:ignora|dimentica) (?:tutte |le |tue )*[\w ]*(?:istruzioni|regole)"
    r"|(?:negeer|vergeet) (?:alle |je |de |jouw )*[\w ]*(?:instructies|regels|opdrachten)"
    r"|prompt (?:di|de) (?:sistema|systeme?)|hauptstadt|el tiempo (?:en|hoy|manana|hace)"
    r"|capitale (?:de|du|della|dell.|d.)|lettre de motivation|carta de (?:motivacion|presentacion)"
    r"|lettera di (?:motivazione|presentazione)|hoofdstad van|(?:wat voor )?weer (?:wordt|is) het"
    r"|het weer|wie (?:heeft|won) (?:de wedstrijd|gewonnen)|che (?:tempo fa|ore sono)"
    r"|quel temps (?:fait|fera)|quelle heure|que hora|hoe laat"
    r"|(?:schreib|ecris|escribe|scrivi|schrijf|write)\w*(?: \w+){0,3} "
    r"(?:brief|lettre|carta|lettera|aufsatz|essay|redaccion|tema|opstel|mail|e-?mail|code)"
    r"|wie spat|uhrzeit|what time is it"
    r"|quien gano|chi ha vinto|qui a gagne|wer hat gewonnen|who won"
)
_OTHER_TASK: Final = _words(
    r"(?:write|compose|sing|tell|make up|schreib|dichte|sing|erzahl|ecris|ecrivez|raconte|chante"
    r"|escribe|escribeme|cuentame|canta|scrivi|scrivimi|raccontami|canta|schrijf|vertel|zing)\w*"
    r"(?: \w+){0,3} (?:poems?|haikus?|jokes?|songs?|stor(?:y|ies)|limericks?|gedichte?|witze?|lied"
    r"|geschichte|poeme|blague|chanson|histoire|poema|chiste|cancion|cuento|poesia|barzelletta"
    r"|canzone|storia|gedicht|grap|mop|liedje|verhaal)"
)
_SMALL_TALK: Final = _words(
    r"how are you|how.?s it going|how do you do|what.?s up|wie geht.?s|wie geht es (?:dir|ihnen)"
    r"|comment (?:ca va|vas.tu|allez.vous|tu vas)|ca va|como estas?|que tal|come (?:stai|sta|va)"
    r"|hoe gaat het|hoe is het"
)
_SERVING: Final = _words(
    r"temperatur\w*|temperatuur|decant\w*|dekant\w*|carafe\w*|karaff\w*|how long|wie lange"
    r"|combien de temps|cuanto tiempo|quanto tempo|hoe ?lang"
)
_SMALL_TALK_WORDS: Final = 6
_RUDE: Final = _words(r"shut up|you suck")
_WINE: Final = _words(r"wines?|\w*weine?n?|vins?|vin[oi]s?|wijn(?:en|tje)?|bottles?|flaschen?")
_QUESTION: Final = re.compile(
    r"^(?:so |and |but |ok |okay |please |hi,? |hello,? |hallo,? |hola,? |ciao,? |hoi,? |bonjour,? "
    r"|¿ ?)*(?:(?:can|could) you )?"
    r"(?:what.?s?|whats|why|how|who|when|where|explain|define|describe|teach|is|are|does|was|did"
    r"|tell me)\b"
    r"|\b(?:meaning of|definition of|difference between|explain|what does|what is|what are"
    r"|unterschied zwischen|difference entre|diferencia entre|differenza (?:tra|fra)"
    r"|verschil tussen|son lo mismo|se diferencian?|c.est la meme chose|sono la stessa cosa"
    r"|was bedeutet|was ist|was heisst|que significa|qu.?est.ce qu|che cosa significa"
    r"|cosa (?:vuol dire|significa)|wat (?:betekent|is het verschil)|que veut dire|que quiere decir"
    r"|de que se trata|in cosa consiste|worin unterscheide\w*)\b"
    r"|^(?:hallo,? |hi,? |bonjour,? |ciao,? |hola,? |hoi,? |¿ ?)*"
    r"(?:was (?:ist|sind|bedeute[nt]|heisst|macht|versteht)|warum|wieso|weshalb"
    r"|wie (?:\w+ (?:ich|man) |lange|macht|wird|kann|entsteht|funktioniert|serviert|lagert)"
    r"|(?:muss|soll|sollte|darf|kann|braucht) (?:man|ich)|erklar\w*"
    r"|qu.?est.ce|c.?est quoi|pourquoi|comment|explique\w*|faut.il|doit.on|peut.on|quelle est la"
    r"|que (?:es|son|significa|quiere decir)|por que|como|hay que|se debe|cual es la diferencia"
    r"|cos.? ?e|che cos|cosa (?:e|sono|significa|vuol)|perche"
    r"|che (?:significa|vuol dire|differenza)"
    r"|come|bisogna|si deve|quale? e la differenza|spiega\w*"
    r"|wat (?:is|zijn|betekent|houdt)|waarom|hoe|leg \w+ uit|moet je|kun je uitleggen|mag je"
    r"|waarvoor|waardoor|wofur steht|wat houdt)\b"
    r"|\b(?:which|what) grapes?\b|\b(?:welche|was fur) (?:reb|trauben)\w*|\bquels? cepages?\b"
    r"|\bque uvas?\b|\bqual[ei]? (?:uve|uva|vitign[oi])\b|\bwelke druif\w*|\bwelke druiven\b"
)
_CHOOSING: Final = _words(
    r"goes?|going|pairs?|pairing|match(?:es)?|suits?|fits?|recommend\w*|suggest\w*|have you"
    r"|you have|(?:you|have you) got|good|best|nice|great|buy|there|which|you sell|in stock"
    r"|what about"
    r"|how about|how much|should (?:i|we) (?:drink|buy|have|get|order|choose|serve with|bring)"
    r"|drink with"
    r"|can i (?:drink|buy|have|get)|what (?:kind of |sort of )?(?:wine|red|white|rose|sparkling)s?"
    r"|(?:was|wat|what) (?:trink|drink)\w*|trink\w* (?:man|wir|ich)|(?:quoi|que) (?:boire|beber)"
    r"|cosa (?:bere|bevo|beviamo)|passt|passen|empfiehl\w*|empfehl\w*|gibt es"
    r"|welche[rnms]? (?:\w+)?(?:wein|sekt)"
    r"|hast du|habt ihr|haben sie"
    r"|kostet|kosten|coute|coutent|cuestan?|costano?|kost"
    r"|va avec|vont avec|conseill\w*|recommand\w*|que vino|quel (?:\w+ )?(?:vin|rouge|blanc|rose)"
    r"|vous avez|avez.vous|tu as|as.tu|il y a|va bien"
    r"|recomien\w*|va con|va bien|que (?:tinto|blanco|rosado|espumoso|cava)|tienes?|teneis|tienen"
    r"|consigli\w*|che (?:vino|rosso|bianco|rosato|bollicine)|avete|hai|si abbina|abbinare"
    r"|welke (?:\w+ )?(?:wijn|bubbels|champagne|rode|witte)|past|raad|aanrad\w*|heb je|heeft u"
    r"|hebt u|hebben jullie|lekkere?"
)
_GREETINGS: Final = _words(
    r"hi|hello|hey|howdy|greetings|good (?:morning|evening|afternoon|day)|how are you|/start"
    r"|hallo|servus|moin|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|hola"
    r"|buen[oa]s (?:dias|tardes|noches)|ciao|buongiorno|buonasera|salve"
    r"|hoi|goede(?:morgen|middag|navond|ndag)|dag"
)
_THANKS: Final = _words(
    r"thanks?(?: you)?|thx|cheers|bye|goodbye|danke|tschuss|merci|au revoir|gracias|adios|grazie"
    r"|arrivederci|bedankt|dank (?:je|u)|dankjewel|tot ziens|doei"
)
_HELP: Final = _words(
    r"help|/help|what can you do|what do you do|who are you|what are you|how does this work|hilfe"
    r"|was kannst du|wer bist du|aide|que peux.tu faire|qui es.tu|ayuda|que puedes hacer|aiuto"
    r"|cosa sai fare|chi sei|wat kun je|wat kan je|wie ben je|hoe werkt dit"
)
_SURPRISE: Final = _words(
    r"surprise me|anything|whatever|you choose|you decide|your choice|dealer.?s choice"
    r"|uberrasch\w*|egal was|was du willst|such du aus|surprends.moi|surprenez.moi"
    r"|comme (?:tu|vous) (?:veux|voulez)|au hasard|sorprendeme|sorprendame|lo que quieras"
    r"|elige tu|sorprendimi|mi sorprenda|scegli tu|fai tu|verras me|verras ons|kies jij"
    r"|kies maar|maakt niet uit|doe maar iets|verrassing"
)


def is_off_topic(text: str) -> bool:
    """Whether a folded text has words that have nothing to do with wine."""
    stems = {token.stem for token in tokens(text)} | set(text.split())
    return bool(stems & _OFF_TOPIC_WORDS) or _OFF_TOPIC.search(text) is not None


def is_other_task(text: str) -> bool:
    """Whether a folded text wants something written or told, be it about wine."""
    return _OTHER_TASK.search(text) is not None


def is_small_talk(text: str) -> bool:
    """Whether a folded text asks how one is, and little more."""
    return len(text.split()) <= _SMALL_TALK_WORDS and _SMALL_TALK.search(text) is not None


def asks_how_to_serve(text: str) -> bool:
    """Whether a folded text is about serving or keeping wine."""
    return _SERVING.search(text) is not None


def is_rude(text: str) -> bool:
    """Whether a folded text insults somebody, or something."""
    return bool(set(re.findall(r"\w+", text)) & _RUDE_WORDS) or _RUDE.search(text) is not None


def speaks_of_wine(text: str) -> bool:
    """Whether a folded text names wine at all."""
    return _WINE.search(text) is not None


def is_question(text: str) -> bool:
    """Whether a folded text asks to be told something."""
    return _QUESTION.search(text) is not None


def is_choosing(text: str) -> bool:
    """Whether a folded text asks for a wine, be it as a question."""
    return _CHOOSING.search(text) is not None


def is_greeting(text: str) -> bool:
    """Whether a folded text greets."""
    return _GREETINGS.search(text) is not None


def is_thanks(text: str) -> bool:
    """Whether a folded text thanks or takes leave."""
    return _THANKS.search(text) is not None


def asks_for_help(text: str) -> bool:
    """Whether a folded text asks what can be asked."""
    return _HELP.search(text) is not None


def leaves_it_open(text: str) -> bool:
    """Whether a folded text leaves the choice to the house."""
    return _SURPRISE.search(text) is not None
