"""Quotes inside free text, held word for word against what the tools of the turn returned.

A passage counts as a quote of a document when it stands in quotation marks and its sentence has a
citation, or when it is a Markdown block quote. Shorter ones may be terms, and what the guest wrote,
the names of wines and the titles of documents may stand in quotation marks as they are.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from agent.documents.citations import PATH, Cited, blocks, citations, without_idle
from agent.documents.store import Chunk
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.sommelier.wine import Wine

LEAST_WORDS: Final = 5
LEAST_CHARS: Final = 25
LEAST_WIDE_CHARS: Final = 12
"""In scripts that put no space between words."""
LONGEST_TITLE: Final = 12
SHOWN_CHARS: Final = 120

WIDE: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
BLOCK_QUOTE: Final = re.compile(r"(?:^[ \t]*(?:\*\*)?>[^\n]*(?:\n|\Z))+", re.MULTILINE)
QUOTE_MARK: Final = re.compile(r"^[ \t]*(?:\*\*)?(?:>[ \t]?)+", re.MULTILINE)
QUOTED: Final = re.compile(
    r"""“(?:[^“”]|“[^“”]*”)*”            # one quote within may use the same marks
      | „[^„“”]*[“”] | ”[^“”]*”
      | «(?:[^«»]|«[^«»]*»)*» | »[^«»]*«
      | ‹[^‹›]*› | ›[^‹›]*‹
      | 「(?:[^「」]|「[^「」]*」)*」 | 『[^『』]*』
      | (?<!\w)"(?:(?!\n\s*\n)[^"])*"
      | ‘[^‘\n]*?’(?!\w)
      | (?<![\w'])'(?=\w)[^\n]{0,400}?(?<=[\w.,;:!?…])'(?!\w)""",
    re.VERBOSE,
)
BYLINE: Final = re.compile(r"\s*(?:[–—]|--)[^.!?\n]{1,80}$")
BYLINE_AFTER: Final = re.compile(r"\s(?:[–—]|--)\s*[\"“*_]*[^\W\d_a-z][^.!?\n]{1,80}$")
PRIVATE: Final = re.compile("[\ue000-\ue002]")
HIDDEN: Final = re.compile("[\ue000\ue002](\\d+)\ue001")
HIDDEN_WHOLE: Final = re.compile("(?:> \ue002|\ue000)(\\d+)\ue001(?:[.!?…。！？]?”)?")

SAME_SIGNS: Final = str.maketrans(
    dict.fromkeys('"“”„‟‘’‚‛«»‹›「」『』＂`´', "'")
    | dict.fromkeys("‐‑‒–—―−", "-")
    # What is shown of a document has no square brackets: they would be citations.
    | {"[": "(", "]": ")"}
    | dict.fromkeys("*_\u00ad\u200b\u2060\ufeff")
)


def misquoted(text: str, evidence: Evidence) -> str | None:
    """The first quote in `text` that does not stand in a source, as feedback; None if all do."""
    hidden = hide(text)
    if not hidden.passages:
        return None
    sources = _Sources(evidence)
    found = (_problem(hidden, sentence, sources) for sentence in _sentences(hidden.text))
    return next((problem for problem in found if problem), None)


def without_misquotes(text: str, evidence: Evidence) -> str:
    """`text` without the sentences and block quotes that misquote; as it is if none does."""
    if misquoted(text, evidence) is None:
        return text
    hidden, sources = hide(text), _Sources(evidence)

    def right(sentence: str) -> bool:
        return _problem(hidden, sentence, sources) is None

    left = [
        replace(block, sentences=tuple(filter(right, block.sentences)))
        for block in blocks(hidden.text)
    ]
    return hidden.shown("".join(block.gap + block.text for block in without_idle(left))).strip()


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text with a mark in place of each quote, so that no sentence ends within one."""

    text: str
    passages: tuple[str, ...]

    def within(self, sentence: str) -> list[str]:
        """The quotes that a sentence of the text holds, with their marks."""
        return [self.passages[int(found[1])] for found in HIDDEN.finditer(sentence)]

    def shown(self, text: str) -> str:
        """A part of the text with its quotes in place again."""
        return HIDDEN_WHOLE.sub(lambda found: self.passages[int(found[1])].rstrip("\n"), text)


def hide(text: str) -> Hidden:
    """Put a mark in place of every block quote, and of every long passage in quotation marks."""
    passages: list[str] = []
    parts: list[str] = []

    def mark(quote: str) -> str:
        passages.append(quote)
        return f"{len(passages) - 1}\ue001"

    def mark_passage(found: re.Match[str]) -> str:
        said = found[0][1:-1].rstrip()
        if not is_long(said):
            return found[0]
        return f"\ue000{mark(found[0])}{said[-1] if said[-1] in '.!?…。！？' else ''}”"

    plain, end = PRIVATE.sub("", text), 0
    for block in BLOCK_QUOTE.finditer(plain):
        parts += [
            QUOTED.sub(mark_passage, plain[end : block.start()]),
            f"> \ue002{mark(block[0])}\n",
        ]
        end = block.end()
    parts.append(QUOTED.sub(mark_passage, plain[end:]))
    return Hidden("".join(parts), tuple(passages))


def is_long(passage: str) -> bool:
    """Whether a passage is too long for a term."""
    many_words = len(re.findall(r"\w+", passage)) >= LEAST_WORDS and len(passage) >= LEAST_CHARS
    return many_words or len(WIDE.findall(passage)) >= LEAST_WIDE_CHARS


def _sentences(text: str) -> Iterator[str]:
    for block in blocks(text):
        yield from block.sentences


def _problem(hidden: Hidden, sentence: str, sources: "_Sources") -> str | None:
    """What is wrong with the quotes of a sentence, None if nothing is."""
    problems = (sources.problem(quote, sentence) for quote in hidden.within(sentence))
    return next((problem for problem in problems if problem), None)


class _Sources:
    """What tools and the guest said, made comparable on first need."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._chunks: dict[str, list[str]] = {}
        for found in evidence.found.values():
            if isinstance(found, Chunk):
                self._chunks.setdefault(found.path, []).append(comparable(found.text))

    @cached_property
    def _other_texts(self) -> list[str]:
        """Results of tools as the model saw them, the guest's words, names and titles."""
        found = self._evidence.found.values()
        names = [each.label for each in found if isinstance(each, Wine)]
        titles = [f"{each.title} · {each.location}" for each in found if isinstance(each, Chunk)]
        texts = (text.replace('\\"', '"').replace("\\n", " ") for text in self._evidence.texts)
        return [comparable(text) for text in (*texts, *names, *titles)]

    def problem(self, quote: str, sentence: str) -> str | None:
        """What is wrong with a quote of a sentence; None if nothing is, or if nobody is quoted."""
        cited = self._citations(f"{sentence} {quote}")
        paths = [path for each in cited for path in each.paths]
        if QUOTE_MARK.match(quote):
            return self._problem_of_block(QUOTE_MARK.sub("", quote), paths)
        return self._problem_of(quote[1:-1], paths) if cited else None

    def _problem_of_block(self, quote: str, paths: Sequence[str]) -> str | None:
        """As `problem`, for a block quote: all of it is one passage, or each line is."""
        said = map(self._without_citations, quote.splitlines())
        lines = [line for line in said if line.strip() and not BYLINE.match(line)]
        whole = " ".join(lines)
        if not is_long(whole) or (problem := self._problem_of_line(whole, paths)) is None:
            return None
        if len(lines) == 1:
            return problem
        problems = (self._problem_of_line(line, paths) for line in lines)
        return next((each for each in problems if each), None)

    def _problem_of_line(self, line: str, paths: Sequence[str]) -> str | None:
        """As `problem`; who is quoted may stand behind a dash at the end."""
        shortened = BYLINE_AFTER.sub("", line.strip())
        if is_long(shortened) and self._problem_of(shortened, paths) is None:
            return None
        return self._problem_of(line, paths)

    def _problem_of(self, passage: str, paths: Sequence[str]) -> str | None:
        said = comparable(self._without_citations(passage)).strip(" '.,;:!?()-。、，")
        standing = [path for path, texts in self._chunks.items() if any(said in t for t in texts)]
        if not said or any(path in paths for path in standing):
            return None
        shown = fence(passage, SHOWN_CHARS)
        if standing and paths:
            return f"the quote {shown} stands in [{standing[0]}], not in [{paths[0]}]; cite that"
        if standing or is_title(passage) or any(said in text for text in self._other_texts):
            return None
        return (
            f"the quote {shown} does not stand word for word in anything a tool returned; copy it "
            "letter for letter and in one piece, or say it in your own words, not as a quote"
        )

    def _citations(self, text: str) -> list[Cited]:
        """The citations in a text; a number counts as one, as it is shown like one."""
        return [
            cited
            for cited in citations(text, self._chunks)
            if cited.paths or any(PATH.fullmatch(name) or name.isdigit() for name in cited.unknown)
        ]

    def _without_citations(self, text: str) -> str:
        for cited in reversed(self._citations(text)):
            text = text[: cited.start].rstrip() + text[cited.end :]
        return text


def is_title(passage: str) -> bool:
    """Whether a passage reads like a name or a title: few words, the longer ones capitalised."""
    words = re.findall(r"\w+", passage)
    longer = [word for word in words if len(word) > 3]
    return (
        bool(longer)
        and len(words) <= LONGEST_TITLE
        and passage.rstrip()[-1:] not in {".", "!", "?", "…"}
        and all(word[0].isupper() or word[0].isdigit() for word in longer)
    )


def comparable(text: str) -> str:
    """A text in which white space, case, kinds of quotation marks and dashes make no difference."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(SAME_SIGNS)
    return " ".join(folded.split())
