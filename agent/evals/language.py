"""Which of six languages a text is in, told by its commonest words and its letters.

No dependency and no model: an answer of two sentences has enough function words. Where it has not,
or two languages are too close, the language is unknown, which is no failure of an answer.
"""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Language = Literal["en", "de", "fr", "es", "it", "nl"]

LEAST_EVIDENCE: Final = 1.6  # words that only one language has count 1
LEAST_LEAD: Final = 1.4  # over the second language
LEAST_SHARE: Final = 0.12  # of all words: a text in a seventh language has a few by chance

_COMMON: Final[Mapping[Language, str]] = MappingProxyType(
    {
        "en": """the a an and or but for with without from of to in on at by is are was were be been
            have has had do does did not no yes you your i my we our they their it its this that
            these those what which who when where why how can could will would should may might
            if because as than then there here about more most very too so any some all both each
            just only also out up under over between while into than them he she us goes until""",
        "de": """der die das den dem des ein eine einen einem einer eines und oder aber mit ohne für
            zu zum zur von vom im in bei aus auf unter über bis ist sind war waren sein hat haben
            wird werden nicht kein keine keinen ich mich mir wir uns sie ihr ihre ihnen er es
            dieser diese dieses was welche welcher wie wo wer kann können könnte möchte auch noch
            nur sehr wenn dass als weil dann hier da am etwas durch nach um gern gerne dazu passt
            leider man bitte ja nein mehr so gut ihren ihrem""",
        "fr": """le la les un une des du de et ou mais avec sans pour dans sur sous est sont était
            être a ont avoir ne pas plus je tu il elle nous vous ils mon ma mes votre vos notre nos
            son sa ses leur ce cette ces cet qui que quoi quel quelle dont où comme si au aux en
            par très bien aussi peut peuvent voici c' l' d' j' n' s' qu' se trop moins entre chez
            car même tout tous toute donc ni rien mieux quelque autre""",
        "es": """el la los las un una unos unas de del y o pero con sin para por en es son era ser
            está están hay ha han no sí yo tú usted nosotros ellos su sus mi mis tu este esta estos
            estas ese esa eso que qué cuál quien quién como cómo donde cuando si al lo le les se
            muy más menos también puede pueden aquí entre hasta desde porque todo todos ni nada
            tiene tienen ya cada sobre le me
            esto mejor algo otro otra""",
        "it": """il lo la i gli le un uno una di del dello della dei degli delle e o ma con senza
            per in nel nella nei nelle è sono era essere ha hanno non sì io tu lei noi voi loro mio
            mia suo sua suoi questo questa questi queste quello quella che chi cosa quale come dove
            quando se al allo alla ai agli alle da dal dalla su sul sulla molto più meno anche può
            possono ecco tra fra perché tutto tutti né niente mi si ci l' d' un' dell' all' ad
            ed meglio qualcosa altro altra""",
        "nl": """de het een en of maar met zonder voor van in op aan bij uit onder over tot is zijn
            was waren heeft hebben wordt worden niet geen ik mij me wij we ons u je jij jouw uw
            hij zij ze er dit dat deze die wat welke wie hoe waar kan kunnen zou wil ook nog
            alleen zeer heel erg als omdat dan hier daar om te naar door graag goed past helaas
            meer zo bij uw tussen elk elke iets ja nee""",
    }
)
_LETTERS: Final[Mapping[Language, str]] = MappingProxyType(
    {"en": "", "de": "äöüß", "fr": "çœêâîûùëï", "es": "ñ¿¡óáíú", "it": "òìàù", "nl": "ëï"}
)
_PAIRS: Final[Mapping[Language, tuple[str, ...]]] = MappingProxyType({"nl": ("ij", "aa", "uu")})
_WORD: Final = re.compile(r"[^\W\d_]+(?:'(?=[^\W\d_]{2}))?")  # "l'", but no English "wine's"
_SHARED: Final = Counter(word for words in _COMMON.values() for word in set(words.split()))
_WEIGHTS: Final[Mapping[Language, Mapping[str, float]]] = MappingProxyType(
    {
        language: {word: 1 / _SHARED[word] ** 2 for word in words.split()}
        for language, words in _COMMON.items()
    }
)


def detect(text: str) -> Language | None:
    """The language of `text`, None when there is too little of it or it is not clear."""
    lowered = text.casefold().replace("’", "'")
    words = _WORD.findall(lowered)
    known = sum(word in _SHARED for word in words)
    if not words or known / len(words) < LEAST_SHARE:
        return None
    found = {language: _evidence(language, words, lowered) for language in _COMMON}
    (best, most), (_, second), *_ = sorted(found.items(), key=lambda each: -each[1])
    return best if most >= LEAST_EVIDENCE and most >= LEAST_LEAD * second else None


def _evidence(language: Language, words: list[str], text: str) -> float:
    """How much speaks for a language: its words, and a little for its letters."""
    weights = _WEIGHTS[language]
    letters = sum(text.count(letter) for letter in _LETTERS[language])
    pairs = sum(any(pair in word for pair in _PAIRS.get(language, ())) for word in words)
    return sum(weights.get(word, 0.0) for word in words) + 0.25 * min(4, letters + pairs)
