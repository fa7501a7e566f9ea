"""Documents in retrievable chunks, and how what they say is found, compared and shown.

Words are compared by their stems, by what they mean in six languages and by their beginnings,
numbers by what they are worth (`lexicon.toml`).
"""

import asyncio
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Final, Protocol, TypeVar

from pydantic import BeforeValidator, Field

from agent.classifier import Meanings
from agent.engine.errors import AgentError
from agent.engine.limits import Limits
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.engine.span import PromptRef, Span
from agent.engine.tools import Tool, ToolOutput, tool
from agent.tables import Strict, read_toml
from agent.text import (
    LANGUAGES,
    REMEMBERED,
    Language,
    fold,
    language_of,
    pattern,
    sentences,
    stem,
    truncate_at_boundary,
    words,
)
from agent.turn import Reply
from agent.turn_trace import Outcome, error_types, record_outcome


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable part of a document; `path` is what a citation names.

    `position` counts from 1 to `parts`, the number of chunks of the document; `score` only orders
    the chunks of one search.
    """

    id: str
    document_id: str
    path: str
    title: str
    headings: tuple[str, ...]
    position: int
    parts: int
    text: str
    score: float = 0.0

    @property
    def location(self) -> str:
        """The heading chain, or "Section N of M" where there are no headings."""
        return " > ".join(self.headings) or f"Section {self.position} of {self.parts}"

    @property
    def said(self) -> str:
        """What the document says here."""
        return f"{self.title}\n{self.location}\n{self.text}"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the metadata store knows of a document; `size` is in bytes, `parts` in chunks."""

    id: str
    path: str
    title: str
    kind: str
    content_hash: str
    size: int
    parts: int
    added_at: datetime


class DocumentStore(Protocol):
    """The knowledge base: documents in retrievable chunks, and the metadata of every document."""

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        """Return the best chunks for any of `queries`, wordings of one question, best first.

        At most 3 chunks of one document, unless nothing else matches.
        """

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        """Return those of `paths` that are documents of the metadata store."""

    async def count(self) -> int:
        """Say how many documents there are."""

    async def documents(self) -> list[StoredDocument]:
        """Return what is known of every document, by path."""


class Embedder(Protocol):
    """An embedding source: texts to vectors, near each other where the texts mean alike."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are never compared."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Raises anything when the source is down."""


class EmbeddingError(Exception):
    """The embedding source is down, too slow, or returned something other than vectors."""


async def embed(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """Return one vector of length 1 for each text, in order; `seconds` is the time limit.

    Raises:
        EmbeddingError: no vectors, whatever the reason.
    """
    try:
        async with asyncio.timeout(seconds):
            vectors = await embedder.embed(texts)
    except TimeoutError:
        raise EmbeddingError(f"{embedder.name} did not answer within {seconds:g} s") from None
    except AgentError as error:
        raise EmbeddingError(f"{embedder.name} failed: {error}") from error
    except Exception as error:
        raise EmbeddingError(f"{embedder.name} failed: {type(error).__name__}") from error
    try:
        return _checked(vectors, len(texts))
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{embedder.name} gave no vectors: {error}") from None


def _checked(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} for {count} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("they are of different lengths")
    return [_unit(vector) for vector in vectors]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise ValueError("one has no direction")
    return [value / length for value in vector]


LONGEST: Final = 2_000
"""Characters of a sentence that are looked at."""
BEGINNING: Final = 5
"""Letters by which words of one origin are alike in several languages."""
COMPOUND: Final = 8
"""Letters of a word that may be made of two."""
HALF: Final = 4
TOKEN: Final = pattern("\\d+(?:[.,\u00a0\u202f]\\d+)*|\\p{L}+")

Keys = frozenset[str]
Words = Annotated[frozenset[str], BeforeValidator(str.split)]
Rows = Annotated[
    Sequence[Sequence[str]], BeforeValidator(lambda rows: [row.split(";") for row in rows])
]


class _File(Strict):
    """What `lexicon.toml` holds."""

    anaphors: Words
    same: Rows
    numbers: Mapping[Language, str]
    harmless: Mapping[Language, Words]


class Vocabulary:
    """The words of one language."""

    def __init__(self, language: Language) -> None:
        file = _file()
        self._language: Language = language
        place = LANGUAGES.index(language)
        same = {f"={number}": self._stems(row[place]) for number, row in enumerate(file.same)}
        self._same = Meanings(same)
        worth = map(float, (*range(1, 21), *range(30, 101, 10), 1000))
        said = file.numbers[language].split()
        self._numbers: dict[str, float] = dict(zip(said, worth, strict=True))

    def keys(self, word: str) -> Keys:
        """Return what a folded word is compared by; nothing for a short one."""
        value = self._value(word)
        if value is not None:
            return frozenset({f"#{value:g}"} if word[0].isdecimal() or value > 1 else ())
        if len(word) < 3:
            return frozenset()
        halves = self._halves(word) if len(word) >= COMPOUND else Keys()
        own = (stem(word, self._language), f"{word[:BEGINNING]}~")
        return frozenset({*own, *self._meant(word), *halves})

    def _stems(self, words: str) -> str:
        """Words by their stems, those that stand for beginnings as they are."""
        each = (w if w.endswith("*") else stem(w, self._language) for w in words.split())
        return " ".join(each)

    def _meant(self, word: str) -> frozenset[str]:
        return self._same.of(word) | self._same.of(stem(word, self._language))

    def _halves(self, word: str) -> Keys:
        """What the halves of a compound mean, if both mean something."""
        for at in range(HALF, len(word) - HALF + 1):
            first, second = self._meant(word[:at]), self._meant(word[at:])
            if first and second:
                return first | second
        return Keys()

    def _value(self, word: str) -> float | None:
        """What a number is worth, in digits or in words; None for any other word."""
        if word[0].isdecimal():
            return _worth(word)
        for at in range(len(word), 1, -1):
            rest = word[at:].removeprefix("und").removeprefix("en")
            if word[:at] in self._numbers and (at == len(word) or rest in self._numbers):
                return self._numbers[word[:at]] + self._numbers.get(rest, 0.0)
        return None


def _worth(digits: str) -> float:
    """What digits are worth; before three of them stand thousands."""
    signs = digits.replace("\u00a0", ",").replace("\u202f", ",").replace(".", ",")
    first, *groups = signs.split(",")
    if groups and first.strip("0") and all(len(group) == 3 for group in groups):
        return float(first + "".join(groups))
    return float(".".join([first, "".join(groups)]) if groups else first)


@cache
def _file() -> _File:
    return read_toml(_File, Path(__file__).with_name("lexicon.toml"))


@cache
def vocabulary(language: Language) -> Vocabulary:
    """Return the words of a language."""
    return Vocabulary(language)


def claims_nothing(text: str) -> bool:
    """Say whether all words of a text are of those that claim nothing, in one language."""
    said = [fold(each) for each in WORD.findall(text[:LONGEST])]
    is_worded = bool(said) and not any(map(str.isnumeric, text))
    return is_worded and any(known.issuperset(said) for known in _file().harmless.values())


def is_anaphor(word: str) -> bool:
    """Say whether a folded word points back to another sentence."""
    return word in _file().anaphors


def items(text: str, language: Language | None) -> Iterator[Keys]:
    """Yield what the words of a text are compared by; of every language if its own is not known."""
    found = (_keys(fold(token), language) for token in TOKEN.findall(text[:LONGEST]))
    return (keys for keys in found if keys)


def numbers(text: str) -> Keys:
    """Return what the numbers of a text are compared by."""
    found = (key for keys in items(text, language_of(text)) for key in keys)
    return Keys(key for key in found if key.startswith("#"))


@lru_cache(maxsize=REMEMBERED)
def _keys(word: str, language: Language | None) -> Keys:
    languages = (language,) if language else LANGUAGES
    return Keys().union(*(vocabulary(each).keys(word) for each in languages))


T = TypeVar("T")

LONGEST_QUESTION: Final = 1000
"""Characters of a question that is looked up."""

MAX_CHUNKS: Final = 8
DEFAULT_CHUNKS: Final = 6
PASSAGE_CHARS: Final = 600
SHOWN_PASSAGES: Final = 3
LONGEST_SENTENCES: Final = 1000
"""Characters of the sentences that a quote stands in; a table that is longer is shown by lines."""
LONGEST_COMPOSED: Final = 8000
"""Characters of a text whose accents are put together with their letters before it is compared."""

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
        for sign in _COMPARABLE[ord(character)]:
            last, is_space = signs[-1] if signs else " ", sign.isspace()
            joins = last == "-" and len(signs) > 1 and signs[-2].isalpha()
            if (last == " " and sign == "'" and signs) or (joins and sign.isalpha()):
                signs.pop(), places.pop()
            elif is_space and (last in " '" or (joins and sign == "\n")):
                continue
            signs.append(" " if is_space else sign)
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
    ends with a word.
    """
    place = _place_of(content, text)
    return text[slice(*place)] if place else None


def in_its_sentences(content: str, text: str) -> str | None:
    """Return the whole sentences of `text` that `content` is of, word for word; None if of none.

    A part might say the contrary of its sentence. Of what has no sentences, as a long table has
    none, they are the lines.
    """
    place = _place_of(content, text)
    return text[slice(*_around(text, *place))].strip() if place else None


def is_whole(content: str, text: str) -> bool:
    """Say whether a text is one or more sentences of another, word for word."""
    if (place := _place_of(content, text)) is None:
        return False
    (start, end), (first, last) = place, _around(text, *place)
    return not WORD.search(f"{text[first:start]} {text[end:last]}")


OPENING: Final = pattern(r"[“„”«»‹›「『\"‘']")
QUOTED: Final = pattern(
    "“(?:[^“”]|“[^“”]*”)*”"  # one quote within may use the same marks
    "|„[^„“”]*[“”]|”[^“”]*”|«(?:[^«»]|«[^«»]*»)*»|»[^«»]*«|‹[^‹›]*›|›[^‹›]*‹"
    r'|「(?:[^「」]|「[^「」]*」)*」|『[^『』]*』|"(?:[^"\n]|\n[ \t]*[^"\s])*(?:\n[ \t]*)?"'
)
SINGLE_QUOTED: Final = pattern(r"(?:‘[^‘\n]*?’|'\w(?:[^\n]{0,398}?[\w.,;:!?…])?')(?!\w)")
LONGEST_QUOTED: Final = 8000


def quoted(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each passage in quotation marks begins and ends, with its marks."""
    end = 0
    for opening in OPENING.finditer(text):
        start = opening.start()
        before = text[start - 1] if start else " "
        in_a_word = before.isalnum() or before == "_"
        if start < end or (in_a_word and opening[0] in "\"'") or before + opening[0] == "''":
            continue
        kind = SINGLE_QUOTED if opening[0] in "‘'" else QUOTED
        if found := kind.match(text[start : start + LONGEST_QUOTED]):
            end = start + found.end()
            yield start, end


def _place_of(content: str, text: str) -> tuple[int, int] | None:
    signs, places = _signs_of_source(text)
    for around in ("", QUOTATION_MARKS, f"{QUOTATION_MARKS}…", f"{QUOTATION_MARKS}….()[]"):
        said = comparable(content.strip().strip(f"{around} ")).strip()
        start = _place(said, signs)
        if start is not None:
            return places[start], places[start + len(said) - 1] + 1
    return None


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the sentences begin and end that hold a part of a text; lines if they are too long."""
    (start, end), (first, last) = _with_marks(text, start, end), (0, 0)
    for at, behind in _spans(text):
        first = at if at <= start else first
        last = behind
        if last >= end:
            break
    if last - first <= LONGEST_SENTENCES:
        return first, last
    line_end = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if line_end < 0 else line_end


def _with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """Where a part begins and ends, with the sentences around those that a text quotes in it.

    What a text quotes it need not say itself.
    """
    for first, last in _marked(text):
        within = ((at, behind) for at, behind in _spans(text) if first <= at and behind <= last)
        if any(at < end and start < behind for at, behind in within):
            before = [at for at, _ in _spans(text) if at < first]
            behind = [each for _, each in _spans(text) if each > last]
            start, end = min([start, *before[-1:]]), max([end, *behind[:1]])
    return start, end


@lru_cache(maxsize=64)
def _marked(text: str) -> tuple[tuple[int, int], ...]:
    """Where what a text quotes begins and ends."""
    return tuple(quoted(text))


@lru_cache(maxsize=64)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where the sentences of a text begin and end."""
    found, at = list[tuple[int, int]](), 0
    for sentence in sentences(text):
        at = text.find(sentence, at)
        found.append((at, at + len(sentence)))
        at += len(sentence)
    return tuple(found)


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


Text = Annotated[str, Field(max_length=200)]
Count = Annotated[int, Field(ge=1, le=MAX_CHUNKS)]

NOTHING: Final = "nothing in the library matches; say so, do not answer from memory"
TOOL_LIMITS: Final = Limits(structured_output_max_retries=1, seconds=12)
"""Below the time a tool has, so that the best passages are returned instead of a time-out."""


def search_documents_tool(documents: DocumentStore) -> Tool:
    """Make search_documents over `documents`."""

    async def search_documents(query: Text, run: Run, limit: Count = DEFAULT_CHUNKS) -> ToolOutput:
        """Excerpts from the wine library on regions, grapes, methods, faults, serving, storing,
        pairing and labels. Cite what you use as [path], exactly as it stands before the excerpt.
        What you put in quotation marks must be copied letter for letter.
        """
        chunks = await retrieve(documents, [query], limit, run.span)
        return ToolOutput(excerpts(chunks) or NOTHING, by_chunk(chunks))

    return tool(search_documents)


def excerpts(chunks: Sequence[Chunk]) -> str:
    """Return chunks as the model reads them: `[path]: text`."""
    return "\n\n".join(f"[{as_data(chunk.path)}]: {as_data(chunk.text)}" for chunk in chunks)


def by_chunk(chunks: Iterable[Chunk]) -> dict[str, object]:
    """Return chunks as evidence."""
    return {chunk.id: chunk for chunk in chunks}
