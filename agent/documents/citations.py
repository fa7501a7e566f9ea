"""Citations in answers from documents: what they cover, which rules they break, their numbers.

A statement is covered by a citation in its sentence, directly after its full stop, later in its
paragraph or list item, or on a following line of citations. Headings, lead-ins (they end in a
colon), questions, and the sentence "I don't have enough information" need no citation.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.documents.passages import Chunk, best_passage, content_words, source_line
from agent.engine.contract import Evidence
from agent.engine.errors import quoted
from agent.language import split_sentences
from agent.numerals import NUMBER, find_numbers, parse_number
from agent.text import Match, pattern, split_words

NOT_ENOUGH: Final = "I don't have enough information"
"""The sentence by which a model says that the excerpts do not hold the answer."""

CITATION_PATTERN: Final = pattern(r"\[([^\[\]\n]*[\p{L}\p{N}][^\[\]\n]*)\]")
LEADING: Final = pattern(r"\A((?:\s*\[[^\[\]\n]+\][.,;]?)+)\s*(?:\Z|[^\P{L}a-z])")
MARKER: Final = pattern(r"\A\s*(?:(?:[-*•–]|\d{1,2}[.)])\s+|>\s?)")
HEADING: Final = pattern(r"\A(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\Z")
SOURCE_LINE: Final = pattern(r"\A\W*(?:\w+\s?:)?\W*\Z")
BLANK_LINES: Final = pattern(r"\n{3,}")
STUCK: Final = pattern(r"([.!?…。！？])\[")
ENDS: Final = tuple(".!?…。！？")
SUFFIXES: Final = (".md", ".markdown", ".txt", ".htm", ".html", ".pdf")
MAX_SHOWN_PATHS: Final = 8
MAX_SHOWN_PROBLEMS: Final = 3
MAX_QUOTED_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class Cited:
    """A pair of brackets: the retrieved paths that it cites, and the `unknown_paths`."""

    start: int
    end: int
    paths: tuple[str, ...]
    unknown_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer: the paths that cover it, and the `unknown_paths`."""

    text: str
    needs_citation: bool = False
    cites: tuple[str, ...] = ()
    unknown_paths: tuple[str, ...] = ()

    @property
    def cited_text(self) -> str:
        """Return the sentence with its citations, those of a later sentence included."""
        if not self.needs_citation or CITATION_PATTERN.search(self.text):
            return self.text
        return f"{self.text} {' '.join(f'[{path}]' for path in self.cites)}".strip()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an answer: the list marker before it, and its sentences; none if it is blank."""

    marker: str = ""
    statements: Sequence[Statement] = ()
    is_heading: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered citation: the document, and the passage retrieved from it."""

    number: int
    path: str
    title: str
    location: str
    passage: str

    @property
    def source_line(self) -> str:
        """Return the line that names the source below an answer, in Markdown."""
        return source_line(self.number, self.title, self.location)


class CitationRules:
    """Check the statements of an answer against the chunks that they cite.

    Numbers that the question contains need no source.
    """

    def __init__(self, chunks: Sequence[Chunk], question: str) -> None:
        self._question = question
        self._sources: dict[str, str] = {}
        for chunk in chunks:
            self._sources[chunk.path] = f"{self._sources.get(chunk.path, '')}\n{chunk.source_text}"

    def problem(self, text: str) -> str | None:
        """Return feedback on an answer, or None if it is valid."""
        if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
            return "the answer is JSON; write plain text"
        found = map(self._statement_problem, statements(text, self._sources))
        problems = list(dict.fromkeys(filter(None, found)))
        if problems:
            return "; ".join(problems[:MAX_SHOWN_PROBLEMS])
        if self.valid_part(text):
            return None
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH}"

    def valid_part(self, text: str) -> str:
        """Return the valid sentences unchanged.

        Return an empty text if they neither cite a source nor say that the excerpts do not suffice.
        """
        valid = keep_sentences(
            text, self._sources, lambda statement: self._statement_problem(statement) is None
        )
        is_answer = admits_not_enough(valid) or bool(find_citations(valid, self._sources))
        return valid if is_answer else ""

    def _statement_problem(self, statement: Statement) -> str | None:
        if statement.unknown_paths:
            listed = _bracketed(list(self._sources)[:MAX_SHOWN_PATHS])
            name = quoted(statement.unknown_paths[0])
            return f"[{name}] is not one of the excerpts; cite only {listed}"
        if not statement.needs_citation:
            return None
        quoted_text = quoted(statement.text, MAX_QUOTED_CHARS)
        if not statement.cites:
            return (
                f"this statement has no citation: {quoted_text}; put the [path] of its source "
                "after it, or leave it out"
            )
        sources = "\n".join([self._question, *(self._sources[path] for path in statement.cites)])
        if number := unsupported_number(CITATION_PATTERN.sub("", statement.text), sources):
            cited = _bracketed(statement.cites)
            return f"the number {number} in {quoted_text} does not occur in {cited}; correct it"
        return None


def _bracketed(paths: Iterable[str]) -> str:
    return ", ".join(f"[{path}]" for path in paths)


def footnotes(text: str, chunks: Sequence[Chunk]) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer with numbers in place of paths, and the citations in order of their numbers.

    Passages of one document have numbers of their own: a path gets the number of that chunk of its
    document which shares most words with the statement before it.
    """
    by_path: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_path.setdefault(chunk.path, []).append(chunk)
    by_chunk_id: dict[str, Citation] = {}
    parts, previous_end, statement = [], 0, ""
    for cited in find_citations(text, by_path):
        text_before = text[previous_end : cited.start]
        parts.append(text_before)
        previous_end = cited.end
        if content_words(text_before):  # without words between them, two citations share one
            statement = text_before
        statement_words = content_words(statement)
        for path in cited.paths:
            chunk = max(by_path[path], key=lambda it: len(content_words(it.text) & statement_words))
            if chunk.id not in by_chunk_id:
                number, passage = len(by_chunk_id) + 1, best_passage(chunk.text, statement)
                by_chunk_id[chunk.id] = Citation(
                    number, chunk.path, chunk.title, chunk.location, passage
                )
            parts.append(f"[{by_chunk_id[chunk.id].number}]")
    return "".join([*parts, text[previous_end:]]), tuple(by_chunk_id.values())


def find_citations(text: str, paths: Collection[str]) -> list[Cited]:
    """Return everything in square brackets as citations of `paths`.

    Several paths may share brackets, with commas or semicolons between them. Brackets without a
    letter or digit, such as an ellipsis, are no citation.
    """
    return [_cited(found, paths) for found in CITATION_PATTERN.finditer(text)]


def _cited(found: Match, paths: Collection[str]) -> Cited:
    names = [found[1], *found[1].replace(";", ",").split(",")]
    # A model may have put marks around a path.
    whole, *parts = (name.strip(" \t`'\"*_") for name in names if name.strip())
    named = [whole] if whole in paths else parts
    known = tuple(path for path in named if path in paths)
    return Cited(*found.span(), known, tuple(path for path in named if path not in paths))


def _unknown_paths(found: Iterable[Cited]) -> tuple[str, ...]:
    return tuple(path for cited in found for path in cited.unknown_paths)


def unretrieved_path(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first path in brackets that no tool of the turn returned, or None.

    For answers that cite documents beside other things: other brackets are left alone.
    """
    paths = {found.path for found in evidence.sources.values() if isinstance(found, Chunk)}
    for path in filter(is_path, _unknown_paths(find_citations(text, paths))):
        return f"the text cites [{quoted(path)}], which no tool returned; leave it out"
    return None


def is_path(name: str) -> bool:
    """Return whether a text in brackets reads like a path: with a folder, or a file's ending."""
    is_one_word = name.split() == [name]
    return is_one_word and ("/" in name[:-1] or name[1:].lower().endswith(SUFFIXES))


def statements(text: str, paths: Collection[str]) -> list[Statement]:
    """Return the sentences of an answer in order, each with the paths that cover it."""
    return [statement for line in _lines(text, paths) for statement in line.statements]


def keep_sentences(text: str, paths: Collection[str], accept: Callable[[Statement], bool]) -> str:
    """Return an answer without the sentences that `accept` rejects, otherwise unchanged.

    A statement that was covered by the citation of a later sentence gets this citation itself. A
    heading or lead-in is removed if no sentence remains below it.
    """
    if all(accept(found) and found.cited_text == found.text for found in statements(text, paths)):
        return text.strip()
    kept, has_below = list[str](), False
    for line in reversed(_lines(text, paths)):
        kept_text = " ".join(found.cited_text for found in line.statements if accept(found))
        leads_in = line.is_heading or kept_text.endswith((":", "："))
        if line.statements and (not kept_text or (leads_in and not has_below)):
            continue
        has_below = not line.is_heading if kept_text else has_below
        kept.append(line.marker + kept_text)
    return BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()


def _lines(text: str, paths: Collection[str]) -> list[Line]:
    """Return the lines of an answer with their sentences.

    The lines are read from the last to the first: a citation covers the sentences before it in its
    paragraph or list item, and a line of citations covers the paragraph before it.
    """
    found, covering = list[Line](), list[Cited]()
    for line in reversed(text.strip().splitlines()):
        if _only_cites(line):
            covering = find_citations(line, paths)
            if unknown := _unknown_paths(covering):
                found.append(Line("", [Statement(line, unknown_paths=unknown)]))
            continue
        if not line.strip():  # a paragraph ends above, unless citations follow
            covering = [] if found and found[-1].statements else covering
        is_heading, marker = HEADING.match(line.strip()) is not None, MARKER.match(line)
        lead = marker[0] if marker and not is_heading else ""
        line_statements = list[Statement]()
        for sentence in reversed(_cited_sentences(line[len(lead) :].strip())):
            covering = find_citations(sentence, paths) or covering
            cites = tuple(dict.fromkeys(path for cited in covering for path in cited.paths))
            needs_citation = not is_heading and _needs_citation(sentence)
            line_statements.append(
                Statement(sentence, needs_citation, cites, _unknown_paths(covering))
            )
        covering = [] if lead or is_heading else covering
        found.append(Line(lead, line_statements[::-1], is_heading))
    return found[::-1]


def _cited_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the citations that follow its full stop."""
    found: list[str] = []
    for sentence in split_sentences(STUCK.sub(lambda stuck: f"{stuck[1]} [", text)):
        is_ended = bool(found) and found[-1].rstrip("\"'»”’)*_").endswith(ENDS)
        leading = LEADING.match(sentence) if is_ended else None
        rest = sentence[leading.end(1) :].strip() if leading else sentence
        if leading:
            found[-1] = f"{found[-1]} {leading[1].strip()}"
        if rest:
            found.append(rest)
    return found


def _only_cites(text: str) -> bool:
    """Return whether a text consists of citations only, such as "Sources: [a.md]"."""
    rest = CITATION_PATTERN.sub("", text)
    return rest != text and SOURCE_LINE.match(rest) is not None


def _needs_citation(sentence: str) -> bool:
    """Return whether a sentence is a statement, by its form alone."""
    bare = sentence.strip().strip("*_")
    if admits_not_enough(bare):
        return False
    is_plain = any(map(str.isalpha, bare)) and not bare.endswith((":", "：", "?", "？"))
    return is_plain or CITATION_PATTERN.search(bare) is not None


def admits_not_enough(text: str) -> bool:
    """Return whether a text begins with "I don't have enough information"."""
    admission = split_words(NOT_ENOUGH)
    return split_words(text[: 2 * len(NOT_ENOUGH)])[: len(admission)] == admission


def unsupported_number(statement: str, sources: str) -> str | None:
    """Return the first number in figures that its sources do not hold, in figures or words."""
    figures = NUMBER.findall(statement)
    supported = find_numbers(sources) if figures else frozenset[float]()
    return next((number for number in figures if parse_number(number) not in supported), None)
