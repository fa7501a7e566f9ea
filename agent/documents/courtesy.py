"""Sentences of courtesy that a model puts under an answer: they state nothing. Pure.

Each is known as a whole, and has no room for a word of its own that could be a claim.
"""

import re
from typing import Final

QUESTIONS: Final = (
    r"(?:any |some )?(?:other |more |further |follow-up |additional )?(?:questions?|details|help"
    r"|information|anything(?: else| more)?|more)(?: about (?:this|that|it|wine))?"
)
ASKING: Final = (
    r"(?:please )?(?:just )?(?:let me know|(?:feel free|do not hesitate|don['’]t hesitate) to"
    r" (?:ask|reach out)|ask)(?: me)?"
)
IF: Final = (
    r"(?:if|in case|should) you(?:['’]d like| would like| have| need| want) "
    rf"(?:{QUESTIONS}|to know more)"
)
COURTESIES: Final = (
    r"(?:i )?(?:really )?hope (?:this|that|it) (?:helps|helped|is helpful|was helpful)(?: you)?",
    rf"{ASKING}(?:,? {IF}| {QUESTIONS})?",
    rf"{IF},? {ASKING}",
    r"(?:i['’]?a?m )?(?:always )?(?:happy|glad) to help(?: further| more| you)?",
    r"enjoy|cheers|you['’]re welcome|thank(?:s| you) for (?:asking|your question)",
    r"ich hoffe,? (?:das|dies) hilft(?: dir| ihnen)?(?: weiter)?|zum wohl|prost|gerne?",
    r"j['’]espère que (?:cela|ça) (?:vous |t['’])?aide(?:ra)?|n['’]hésitez pas|santé",
    r"espero que (?:esto |eso )?(?:te |le )?(?:ayude|sirva)|salud",
    r"spero (?:che )?(?:questo )?(?:ti |vi |le )?(?:aiuti|sia (?:utile|d['’]aiuto))|salute",
    r"(?:ik )?hoop dat (?:dit|dat) helpt|proost",
)
COURTESY: Final = re.compile(rf"[\W_]*(?:{'|'.join(COURTESIES)})[\W_]*", re.IGNORECASE)


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence is nothing but courtesy: "I hope this helps!", "Let me know!"."""
    return COURTESY.fullmatch(" ".join(sentence.split())) is not None
