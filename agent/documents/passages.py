"""What cited answers and quotes share: retrieval, passages as they stand, outcome on the trace."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from agent.documents.lexicon import vocabulary
from agent.documents.store import Chunk, DocumentStore
from agent.engine.loop import AgenticResponse
from agent.engine.span import PromptRef, Span
from agent.text import REMEMBERED, language_of, pattern, sentences, truncate_at_boundary, words
from agent.turn import Outcome, Reply, error_types, record_outcome

T = TypeVar("T")

LONGEST_QUESTION: Final = 1000
"""Characters of a question that is looked up."""

MAX_CHUNKS: Final = 8
DEFAULT_CHUNKS: Final = 6
PASSAGE_CHARS: Final = 600
SHOWN_PASSAGES: Final = 3
LONGEST_COMPOSED: Final = 8000
"""Characters of a text whose accents are put together with their letters before it is compared."""

BEST_PASSAGES: Final = "These are the best passages, as they are."
NO_MODEL: Final = "No language model is configured here."
MODEL_FAILED: Final = "My language model gave no answer that I could verify."
BLANK_LINE: Final = pattern(r"\n\s*\n")
MARKUP: Final = pattern(r"(?i)<(/?(?:excerpts|sources|question))\b")
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂"
INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
WORD: Final = pattern(r"\w+")
WIDE: Final = pattern(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no space between words."""
SAME_SIGNS: Final = str.maketrans(
    dict.fromkeys(QUOTATION_MARKS, "'")
    | dict.fromkeys("‐‑‒–—―−", "-")
    # What is shown of a document has no square brackets: they would be citations.
    | {"[": "(", "]": ")", "œ": "oe", "æ": "ae"}
    | dict.fromkeys(f"*_{INVISIBLE}")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """What an answer and quotes have in common.

    `note` says why no model made it, empty if one did.
    """

    outcome: Outcome
    chunks: tuple[Chunk, ...] = ()
    by_model: bool = True
    note: str = ""
    retry_count: int = 0
    error_types: tuple[str, ...] = ()

    def reply(self, text: str) -> Reply:
        """Make the reply of a turn of it; `text` is how it reads."""
        return Reply(
            text=text,
            outcome=self.outcome,
            notes=(self.note,) if self.note else (),
            retries=self.retry_count,
            error_types=self.error_types,
            answer=self,
        )


async def retrieve(
    documents: DocumentStore, queries: Sequence[str], limit: int, span: Span
) -> list[Chunk]:
    """Find the best chunks for any of `queries`, at most 8, of documents that the store knows.

    Raises what the store raises.
    """
    with span.child("retrieve.documents", "retriever", input=list(queries)) as retriever:
        found = await documents.search(queries, min(limit, MAX_CHUNKS))
        known = await documents.known_paths(list({chunk.path for chunk in found}))
        chunks = [chunk for chunk in found[:MAX_CHUNKS] if chunk.path in known]
        retriever.update(
            output=[{"id": chunk.id, "path": chunk.path} for chunk in chunks],
            metadata={"found": len(chunks), "unknown": len(found) - len(chunks)},
        )
    return chunks


def as_data(text: str) -> str:
    """Return a text that cannot close the fence it is put into."""
    return MARKUP.sub(lambda found: f"‹{found[1]}", text)


def best_passage(text: str, question: str, limit: int = PASSAGE_CHARS) -> str:
    """Return the paragraph with most words of `question`; a contiguous part of `text`, as it is."""
    asked = telling_words(question)
    paragraphs = [part.strip() for part in BLANK_LINE.split(text)]
    best = max(paragraphs, key=lambda paragraph: len(asked & telling_words(paragraph)), default="")
    return truncate_at_boundary(best, limit)


def telling_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning: folded, longer than two letters."""
    return {word for word in words(text) if len(word) > 2 or not word.isascii()}


class _Comparable(dict[int, str]):
    """What each character is compared as, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code).translate(SAME_SIGNS)).casefold()
        said = plain.translate(SAME_SIGNS)
        if len(self) < REMEMBERED:
            self[code] = said
        return said


_COMPARABLE: Final = _Comparable()


def comparable(text: str) -> str:
    """Return a text in which kinds of white space, case, quotation marks and dashes are one.

    Words that are joined by a hyphen, or parted by one at the end of a line, are one word.
    """
    return _signs(unicodedata.normalize("NFC", text) if len(text) <= LONGEST_COMPOSED else text)[0]


def _signs(text: str) -> tuple[str, tuple[int, ...]]:
    """A text made comparable, and of each sign the place of its character in the text."""
    signs: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for sign in character.translate(_COMPARABLE):
            last, before = signs[-1:] or [" "], signs[-2:-1]
            joins = last == ["-"] and before and before[0].isalpha()
            if (last == [" "] and sign == "'" and signs) or (joins and sign.isalpha()):
                signs.pop(), places.pop()
            elif sign.isspace() and (last[0] in " '" or (joins and sign == "\n")):
                continue
            signs.append(" " if sign.isspace() else sign)
            places.append(place)
    return "".join(signs).rstrip(" "), tuple(places)


_signs_of_source: Final = lru_cache(maxsize=64)(_signs)


def stands_in(said: str, text: str) -> bool:
    """Say whether a comparable text holds another, from the beginning of a word to an end."""
    return _place(said, text) is not None


def _place(said: str, text: str) -> int | None:
    start = text.find(said) if said else -1
    while start >= 0:
        end = start + len(said)
        if not any(_within_word(text[max(0, at - 1) : at + 1]) for at in (start, end)):
            return start
        start = text.find(said, start + 1)
    return None


def _within_word(around: str) -> bool:
    """Whether two signs belong to one word; scripts that write no spaces have words everywhere."""
    return len(around) == 2 and around.isalnum() and not WIDE.search(around)


def verbatim(content: str, text: str) -> str | None:
    """Return the contiguous part of `text` that is `content`, to the letter; None if there is none.

    White space and case make no difference, nor do kinds of quotation marks, dashes and dots, which
    models level as they copy; marks and dots around all of it may be the model's. It begins and
    ends with a word. Where the rest of its sentence denies something, it is the whole sentence: a
    part of it might say the contrary.
    """
    signs, places = _signs_of_source(text)
    for around in ("", QUOTATION_MARKS, f"{QUOTATION_MARKS}…", f"{QUOTATION_MARKS}….()[]"):
        said = comparable(content.strip().strip(f"{around} ")).strip()
        start = _place(said, signs)
        if start is not None:
            return _with_denial(text, places[start], places[start + len(said) - 1] + 1)
    return None


def _with_denial(text: str, start: int, end: int) -> str:
    """A part of a text, with the whole of its sentences if what is left of them denies."""
    first = last = at = 0
    for sentence in sentences(text):
        at = text.find(sentence, at)
        first = at if at <= start else first
        last = at + len(sentence)
        if last >= end:
            break
        at = last
    told = vocabulary(language_of(text) or "en")
    left = words(f"{text[first:start]} {text[end:last]}")
    return text[first:last] if any(map(told.denies, left)) else text[start:end]


def outcome_of(response: AgenticResponse[T]) -> Outcome:
    """Tell what a model's answer came to, for the person."""
    if response.ok:
        return "salvaged" if response.outcome == "salvaged" else "answered"
    return "refused" if response.outcome in {"refusal", "content_filter"} else "fallback"


def record(
    span: Span,
    outcome: Outcome,
    response: AgenticResponse[T] | None,
    prompt: PromptRef | None = None,
) -> None:
    """Put what an answer came to onto its span.

    `prompt` is what a model was asked with, if one was.
    """
    errors = error_types(response) if response else ()
    retries = response.retry_count if response else 0
    record_outcome(span, outcome, retries=retries, error_types=errors, prompt=prompt)
