"""The admission that the excerpts do not suffice: what counts as one, and as its reason. Pure.

The prompt asks for "I don't have enough information"; models say it in the language of the
question, and politely.
"""

import re
from typing import Final

LEAD_IN: Final = r"""
    [\W_]*
    (?:(?:however|but|unfortunately|sorry|i['’]?\s?a?m\ (?:very\ |so\ )?(?:sorry|afraid)
        |leider|malheureusement|(?:je\ suis\ )?désolée?|lo\ siento|lamentablemente
        |mi\ dispiace|purtroppo|helaas
        |(?:based\ on|from|according\ to|given|as\ (?:for|to)|on|about|for|regarding|concerning
            |beyond)\b[^,.!?;:]{1,80}
     )(?:,\s*|\s+)
     (?:(?:but|that|aber|mais|que|pero|ma|maar)\s+)?
    )?"""
ENOUGH: Final = r"(?:enough|sufficient)\ (?:\w+\ )?information"
NOT_ENOUGH: Final = rf"""
    (?:i\ (?:currently\ )?(?:don['’]t|do\ not)\ have\ {ENOUGH}
    |there\ (?:isn['’]t|is\ not)\ {ENOUGH}
    |(?:the|these|my)\ (?:\w+\ ){{0,3}}(?:excerpts?|documents?|sources?|passages?)\ (?:\w+\ ){{0,2}}
        (?:don['’]t|doesn['’]t|do\ not|does\ not)\ (?:contain|hold|have|provide|include)\ {ENOUGH}
    |(?:ich\ habe|habe\ ich|(?:mir|es)\ liegen)\ (?:\w+\ ){{0,3}}
        (?:nicht\ genug|nicht\ genügend|nicht\ ausreichend|keine\ ausreichenden|zu\ wenige?)
        \ Informationen
    |je\ n['’]ai\ pas\ (?:assez|suffisamment)\ d['’]informations?
    |je\ ne\ dispose\ pas\ (?:d['’]assez|de\ suffisamment)\ d['’]informations?
    |no\ (?:tengo|dispongo\ de|cuento\ con)\ (?:suficiente\ información|información\ suficiente)
    |non\ (?:ho|dispongo\ di)\ (?:abbastanza\ informazioni|(?:informazioni\ )?sufficienti)
    |(?:ik\ heb|heb\ ik)\ (?:\w+\ ){{0,2}}(?:niet\ genoeg|niet\ voldoende|onvoldoende)\ informatie
    |não\ tenho\ informaç(?:ão|ões)\ suficientes?
    )\b"""
ADMISSION: Final = re.compile(LEAD_IN + NOT_ENOUGH, re.IGNORECASE | re.VERBOSE)
SOURCES: Final = re.compile(
    r"\b(?:excerpt|document|passage|source|librar|text|article|provided|information|mention"
    r"|ausz[uü]g|dokument|quelle|textstelle|erwähn|extrait|mentionn|extract|fuente|fragment"
    r"|estratt|font[ei]|bran[oi]|menzion|uittreksel|bronn?|teksten|vermeld|trecho)",
    re.IGNORECASE,
)
SHORT: Final = 3
"""Words of a sentence that is too short to state anything: "Sorry about that." """


def admits_not_enough(text: str) -> bool:
    """Whether a text opens with "I don't have enough information", or the same in other words."""
    return ADMISSION.match(text) is not None


def is_reason(sentence: str) -> bool:
    """Whether a sentence behind the admission speaks of what the sources lack, not of wine."""
    return SOURCES.search(sentence) is not None or len(sentence.split()) <= SHORT
