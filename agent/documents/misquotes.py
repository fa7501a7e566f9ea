"""Quotations in an answer that stand in no source.

A passage counts as a quotation when it stands in quotation marks in a paragraph that cites a
document, or in a Markdown block quote, and is too long for a term or a name.
"""

from collections.abc import Sequence
from typing import Final

from agent.documents.citations import (
    Block,
    blocks,
    citations,
    cited_sentences,
    is_path,
    without_citations,
)
from agent.documents.passages import as_data
from agent.documents.verbatim import UNSPACED, verbatim
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.text import pattern

LEAST_WORDS: Final = 5
LEAST_CHARS: Final = 25
LEAST_UNSPACED_CHARS: Final = 12
SHOWN_CHARS: Final = 120
WORD: Final = pattern(r"\w+")
QUOTED: Final = pattern(r'“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|「[^「」]*」|"[^"\n]*"')
BYLINE: Final = pattern(r"\s*(?:[–—]|--)[^.!?\n]{1,80}\Z")


def misquoted(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first quotation in `text` that stands in no source, or None."""
    found = (_problem(block, evidence.texts) for block in blocks(text))
    return next(filter(None, found), None)


def without_misquotes(text: str, evidence: Evidence) -> str:
    """Return `text` without the sentences and block quotes that misquote."""
    left = ((block, _without_misquotes(block, evidence.texts)) for block in blocks(text))
    return "".join(block.gap + block.marker + said for block, said in left if said).strip()


def _without_misquotes(block: Block, sources: Sequence[str]) -> str:
    wrong = [
        place for place in _quotations(block) if not _stands(block.text[slice(*place)], sources)
    ]
    kept, at = [], 0
    for sentence in cited_sentences(block.text):
        start = max(at, block.text.find(sentence, at))
        at = start + len(sentence)
        if not any(start < end and begin < at for begin, end in wrong):
            kept.append(sentence)
    return " ".join(kept) if wrong else block.text


def _problem(block: Block, sources: Sequence[str]) -> str | None:
    for start, end in _quotations(block):
        if not _stands(block.text[start:end], sources):
            return (
                f"the quote {fence(block.text[start:end], SHOWN_CHARS)} does not stand word for "
                "word in anything a tool returned; copy it letter for letter and in one piece, or "
                "say it in your own words, not as a quote"
            )
    return None


def _stands(quotation: str, sources: Sequence[str]) -> bool:
    bare = without_citations(quotation).strip(" .,;:!?…")
    return any(verbatim(bare, as_data(source)) for source in sources)


def _quotations(block: Block) -> list[tuple[int, int]]:
    """Return where a block quotes what is too long for a term, without the quotation marks."""
    if block.marker.strip() == ">":
        byline = BYLINE.search(block.text)
        places = [(0, byline.start() if byline else len(block.text))]
    elif any(is_path(name) for cited in citations(block.text, ()) for name in cited.unknown):
        places = [(found.start() + 1, found.end() - 1) for found in QUOTED.finditer(block.text)]
    else:
        places = []
    return [(start, end) for start, end in places if is_long(block.text[start:end])]


def is_long(passage: str) -> bool:
    """Return whether a passage is too long for a term or a name."""
    has_many_words = len(WORD.findall(passage)) >= LEAST_WORDS and len(passage) >= LEAST_CHARS
    return has_many_words or len(UNSPACED.findall(passage)) >= LEAST_UNSPACED_CHARS
